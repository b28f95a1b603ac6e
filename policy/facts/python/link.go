package python

import (
	"path"
	"strings"
)

// linkHandlers make symbolic links, whose targets are looked for from where the
// links lie.
func linkHandlers() map[string]handler {
	return map[string]handler{
		"os.symlink": func(c *invocation) *val {
			target, at := c.at(0, "src"), c.at(1, "dst")
			if target == nil || at == nil || c.kw["dir_fd"] != nil || len(c.pos) > 3 {
				return nil
			}
			if t := fromLink(pathText(target), pathText(at)); t != nil && len(c.pos) > 0 {
				c.pos = append([]*val{t}, c.pos[1:]...)
			} else if t != nil {
				c.set("src", t)
			}
			return nil
		},
		"pathlib.Path.symlink_to": func(c *invocation) *val {
			if len(c.pos) == 0 || c.self == nil || !isPath(c.self) || c.self.x.str == nil {
				return nil
			}
			if t := fromLink(pathText(c.pos[0]), c.self.x.str); t != nil {
				c.pos = append([]*val{t}, c.pos[1:]...)
			}
			return nil
		},
	}
}

// farUp is how many folders up nobody goes who means one of their own.
const farUp = 5

// fromLink is what a relative target means for a link at a place; nil where it
// is not relative, or the place is not known and the target is.
func fromLink(target, at *val) *val {
	t, known := target.oneText()
	if !known {
		if up := head(target); target.kind == kUnknown && strings.HasPrefix(up, "../") && strings.Trim(up, "./") == "" && strings.Count(up, "../") < farUp {
			return &val{from: target.from} // somewhere above a folder that is not known either
		}
		return nil
	}
	link, ok := at.oneText()
	if !ok || t == "" || t[0] == '/' || t[0] == '~' {
		return nil
	}
	return target.mapText(target.kind, func(s string) (string, bool) { return path.Dir(link) + "/" + s, true })
}
