package javascript

import (
	"path"
	"strings"
)

// nativeSymlink has the target of a link looked for from where the link lies.
func nativeSymlink(_ *walk, s *site) (*val, bool) {
	target, known := s.arg(0).one()
	link, placed := s.arg(1).one()
	if !known || !placed || s.open || target == "" || link == "" || strings.HasPrefix(target, "/") || strings.HasPrefix(target, "~") {
		return nil, false
	}
	t := text(path.Dir(link) + "/" + target)
	t.From = s.args[0].From
	s.args = append([]*val{t}, s.args[1:]...)
	return nil, false
}
