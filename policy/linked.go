package policy

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// linked has facts name files by their places in the workspace that a program names
// by an image's link to it, a [sandbox.Image.Link]. What the path makes worse than
// another's file, such as a key or a hook, stays as it is.
func linked(doc *facts.Document, link string) {
	if link == "" {
		return
	}
	for i := range doc.Files {
		f := &doc.Files[i]
		if at := sandbox.Followed(f.Path, link); f.Class == "other_home" && at != f.Path && !strings.Contains(at+"/", "/.git/") {
			f.Path, f.Class = at, "workspace"
		}
	}
	for i := range doc.Dynamic {
		from := doc.Dynamic[i].From
		for j, origin := range from {
			if name, is := strings.CutPrefix(origin, "file:"); is && strings.HasPrefix(name, "/") && !strings.HasSuffix(name, "/") {
				from[j] = "file:" + sandbox.Followed(name, link)
			}
		}
	}
}
