package e2b

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// baseTemplate is what clients ask for that name none, and what it is here.
const (
	baseTemplate = "base"
	baseLanguage = "python@e2b"
)

// template makes a template's name what caisson has: a language's image, or an
// image by its reference. Errors: NotFound.
func (s *Server) template(ctx context.Context, o *api.SessionOptions) error {
	name := o.Labels[labelTemplate]
	if name == baseTemplate {
		o.Language = baseLanguage
		return nil
	}
	languages, err := s.svc.Languages(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(languages, func(l api.LanguageInfo) bool { return l.Name == name || slices.Contains(l.Aliases, name) }) {
		o.Language = name
		return nil
	}
	if strings.ContainsAny(name, ":/@") {
		o.Image = name
		return nil
	}
	return sandbox.Errorf(sandbox.NotFound, "template %s was not found", name).WithHint("use %s, a language of caisson languages, or the reference of an image", baseTemplate)
}
