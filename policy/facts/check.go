package facts

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
)

var doings = []string{"file", "net", "net_remote", "file_or_net", "argv", "shell", "shell_join", "execv", "code", "code_text", "env", "action", "dynamic", "apply", "import", "chdir", "template"}

// Check reports what is wrong with the tables: an effect that does nothing
// known, a Like that leads nowhere or round in a circle, a pattern that is not
// one.
func (t *Tables) Check() error {
	var errs []error
	for _, r := range t.Paths {
		for _, m := range slices.Concat(r.Match, r.Base) {
			if _, err := path.Match(m, "x"); err != nil {
				errs = append(errs, fmt.Errorf("path class %s: pattern %q: %w", r.Class, m, err))
			}
		}
	}
	for name, p := range t.Programs.All() {
		errs = append(errs, effectErrors(name, p.Effects)...)
		if !ends(name, func(n string) (string, bool) { q, ok := t.Programs.Get(n); return q.Like, ok }) {
			errs = append(errs, fmt.Errorf("program %s: like leads nowhere", name))
		}
		for _, r := range p.Runs {
			if _, err := regexp.Compile(r.Pattern); err != nil {
				errs = append(errs, fmt.Errorf("program %s: %w", name, err))
			}
		}
	}
	for lang, apis := range t.APIs {
		for name, a := range apis.All() {
			errs = append(errs, effectErrors(string(lang)+" "+name, a.Effects)...)
			if !ends(name, func(n string) (string, bool) { q, ok := apis.Get(n); return q.Like, ok }) {
				errs = append(errs, fmt.Errorf("%s %s: like leads nowhere", lang, name))
			}
		}
	}
	return errors.Join(errs...)
}

func effectErrors(name string, effects []Effect) (errs []error) {
	for _, e := range effects {
		if !slices.Contains(doings, e.Do) {
			errs = append(errs, fmt.Errorf("%s: unknown effect %q", name, e.Do))
		}
	}
	return errs
}

// ends follows Like from name and reports whether that comes to an end.
func ends(name string, like func(string) (string, bool)) bool {
	for range 8 {
		next, ok := like(name)
		if !ok {
			return false
		}
		if next == "" {
			return true
		}
		name = next
	}
	return false
}
