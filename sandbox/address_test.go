package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestShownAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://u:s3cret@h.test:8443/s3cret?t=s3cret#s3cret": "https://h.test:8443",
		"http://[::1]:80/s3cret":                              "http://[::1]:80",
		"h.test/s3cret":                                       "an address without scheme or host",
		"https:///s3cret":                                     "an address without scheme or host",
		"https://h.test/s3cret\x7f":                           "an address without scheme or host",
		"mailto:s3cret":                                       "an address without scheme or host",
		"":                                                    "an address without scheme or host",
	} {
		if got := sandbox.ShownAddress(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	err := sandbox.ShownError(fmt.Errorf("ask: %w", &url.Error{Op: "Post", URL: "https://u:p@h.test/s3cret", Err: context.Canceled}))
	if strings.Contains(err.Error(), "s3cret") || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if plain := errors.New("x"); !errors.Is(sandbox.ShownError(plain), plain) || sandbox.ShownError(nil) != nil {
		t.Error("an error without an address is not as it was")
	}
}
