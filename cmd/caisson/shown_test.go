package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

var update = flag.Bool("update", false, "write the recorded terminal into README.md")

// What README.md shows of a terminal stands between these.
const (
	shownBegin = "<!-- recorded: go test ./cmd/caisson -run TestTerminalShown -update -->\n```text\n"
	shownEnd   = "```\n"
)

// TestTerminalShown sits at the terminal of a session, which --record records. The
// recording, shown again, is the screen that README.md shows.
func TestTerminalShown(t *testing.T) {
	t.Parallel()
	enginetest.Tool(t, "tmux", "tmux")
	kit, base := place(t)
	kit.Image(t, "python")
	p := newPane(t, kit, base, "80", "20")
	said(t, kit, base, "session", "create", "work", "--language", "python")
	t.Cleanup(func() { said(t, kit, base, "session", "rm", "work", "--force") })
	cast := base + "/work.cast"
	p.types(t, "caisson exec -it work --record "+cast+" -- bash --norc", "Enter")
	p.shows(t, `(?m)^bash-[0-9.]+\$ ?$`)
	for _, s := range []struct{ keys, shows string }{
		{"stty size", `(?m)^20 80$`},
		{"python3 -q", `(?m)^>>> ?$`},
		{"import time; rate = 7; print('waits'); time.sleep(600)", `(?m)^waits$`},
		{"C-c", `(?m)^KeyboardInterrupt\n>>> ?$`},
		{"rate * 6", `(?m)^42\n>>> ?$`},
		{"C-d", `(?m)^>>> ?\nbash-[0-9.]+\$ ?$`},
		{"stty -echo; read -p 'Password: ' p; stty echo; echo; echo ${#p} long", `(?m)^Password: ?$`},
		{"secret", `(?m)^6 long$`},
		{"exit 7", `(?m)^exit\nhost> ?$`},
	} {
		if p.types(t, s.keys); !strings.HasPrefix(s.keys, "C-") {
			p.types(t, "Enter")
		}
		p.shows(t, s.shows)
	}
	b, err := os.ReadFile(cast)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/screen", []byte(replayed(t, string(b))), 0o600); err != nil {
		t.Fatal(err)
	}
	p.types(t, "clear; cat "+base+"/screen; read wait", "Enter")
	p.shows(t, `(?m)^exit\n\s*$`)
	screen := strings.TrimRight(p.tmux(t, "capture-pane", "-p"), "\n") + "\n"
	doc, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(doc), shownBegin)
	shown, after, ends := strings.Cut(rest, shownEnd)
	if !begins || !ends {
		t.Fatalf("README.md shows no terminal below %s", shownBegin)
	}
	if *update {
		if err := os.WriteFile("../../README.md", []byte(before+shownBegin+screen+shownEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if screen != shown {
		t.Errorf("README.md shows\n%s\nand the terminal shows\n%s", shown, screen)
	}
}

// replayed is all that a recording shows.
func replayed(t *testing.T, cast string) string {
	t.Helper()
	var shown strings.Builder
	for line := range strings.Lines(cast) {
		var event []any
		if err := json.Unmarshal([]byte(line), &event); err == nil && event[1] == "o" { // the first is no event
			shown.WriteString(event[2].(string))
		}
	}
	return shown.String()
}
