package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestRested has a server that nobody asks take its program's pages out of its memory,
// and answer as before.
func TestRested(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	local := "unix://" + base + "/srv.sock"
	server := start(t, kit, base, "serve", "--listen", local)
	server.await(t, local)
	if code := ask(t, local, "POST", "/v1/runs", "", map[string]any{"command": []string{"true"}}, nil); code != 200 {
		t.Fatalf("%d; %s", code, server.errs)
	}
	mapped := func() (kib int) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), "RssFile:")
		if _, err := fmt.Sscan(rest, &kib); err != nil {
			t.Fatal(err)
		}
		return kib
	}
	busy := mapped()
	until(t, "its pages are unmapped", func() bool { return mapped() < busy*2/3 })
	if code := ask(t, local, "POST", "/v1/runs", "", map[string]any{"command": []string{"true"}}, nil); code != 200 {
		t.Errorf("%d; %s", code, server.errs)
	}
}
