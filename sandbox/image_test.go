package sandbox

import "testing"

// TestImageUser: who runs programs is named by the image's link to a home, and by
// nothing that would be somebody else or no name.
func TestImageUser(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"": "sandbox", "/home/user": "user", "/home/a.b-c": "a.b-c", "/srv/user": "sandbox", "/home/": "sandbox", "/home/a/b": "sandbox", "/home/a:b": "sandbox",
		"/home/a\nb": "sandbox", "/home/root": "sandbox", "/home/runner": "sandbox",
	} {
		if got := (Image{Link: link}).User(); got != want {
			t.Errorf("%q: %q", link, got)
		}
	}
}
