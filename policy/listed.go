package policy

import (
	"path"
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// writtenLike reports that the program writes a file which a pattern of the
// shell's means, or may.
func (p *provenance) writtenLike(pattern string) bool {
	i := strings.IndexAny(pattern, "*?[")
	if i < 0 {
		return pattern != "" && p.written(pattern)
	}
	dir := pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
	for j := range p.d.Files {
		f := &p.d.Files[j]
		switch f.Op {
		case facts.OpWrite, facts.OpAppend:
		case facts.OpCopyDst, facts.OpMoveDst, facts.OpLink:
			if strings.HasPrefix(f.Path+"/", dir) || strings.HasPrefix(dir, f.Path+"/") { // into the folder
				return true
			}
			continue
		default:
			continue
		}
		if hit, err := path.Match(pattern, f.Path); hit || err != nil {
			return true
		}
	}
	return false
}

// namesCode reports that the program makes a file whose name reads as a command
// line, which who runs the names of files runs.
func (p *provenance) namesCode() bool {
	for i := range p.d.Files {
		f := &p.d.Files[i]
		switch f.Op {
		case facts.OpWrite, facts.OpAppend, facts.OpCopyDst, facts.OpMoveDst, facts.OpLink, facts.OpMkdir:
			if strings.ContainsAny(path.Base(f.Path), " ;|&$`\n") {
				return true
			}
		}
	}
	return false
}
