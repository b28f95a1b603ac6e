package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestKeyboard passes on what is typed but for the keys by which a person leaves,
// however they come.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys, in, out string
		left          bool
	}{
		{"ctrl-p,ctrl-q", "ls\r", "ls\r", false},
		{"ctrl-p,ctrl-q", "a\x10\x11b", "a", true},
		{"ctrl-p,ctrl-q", "a\x10b", "a\x10b", false},
		{"ctrl-p,ctrl-q", "\x10\x10\x11", "\x10", true},
		{"ctrl-p,ctrl-q", "\x11\x10x", "\x11\x10x", false},
		{"a,b,c", "ababc", "ab", true},
		{"ctrl-\\", "x\x1cy", "x", true},
		{"", "\x10\x11", "\x10\x11", false},
	} {
		keys, err := parseKeys(c.keys)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(c.in), "each": iotest.OneByteReader(strings.NewReader(c.in))} {
			left := false
			got, err := io.ReadAll(&keyboard{in: r, keys: keys, leave: func() { left = true }})
			if err != nil || string(got) != c.out || left != c.left {
				t.Errorf("%q of %q, %s: %q, left %v, %v", c.keys, c.in, name, got, left, err)
			}
		}
	}
	for _, wrong := range []string{"ctrl-", "ctrl-1", "shift-a", "a,,b", strings.Repeat("a,", 16) + "a"} {
		if _, err := parseKeys(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestRecordIsAskedFor has nothing recorded where no flag asks for it.
func TestRecordIsAskedFor(t *testing.T) {
	t.Parallel()
	var o terminalOptions
	o.flags(pflag.NewFlagSet("attach", pflag.ContinueOnError))
	if o.record != "" {
		t.Errorf("it is recorded into %q", o.record)
	}
}

// TestCast reads back a recording: characters are whole, and everything is there.
func TestCast(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/x.cast"
	c, err := newCast(name, sandbox.TerminalSize{Rows: 30, Cols: 100}, "xterm")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []byte("é世\x1b[1m\r\n") {
		if _, err := c.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	c.resize(sandbox.TerminalSize{Rows: 31, Cols: 101})
	if _, err := c.Write([]byte("end\xe4")); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a recording that cannot be written is passed over")
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var head struct{ Version, Width, Height, Timestamp int }
	if err := d.Decode(&head); err != nil || head.Version != 2 || head.Width != 100 || head.Height != 30 || head.Timestamp == 0 {
		t.Errorf("%+v, %v", head, err)
	}
	shown, sizes, last := "", []string{}, 0.0
	for d.More() {
		var e [3]any
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if at := e[0].(float64); at < last {
			t.Errorf("%v after %v", at, last)
		} else {
			last = at
		}
		if e[1] == "r" {
			sizes = append(sizes, e[2].(string))
			continue
		}
		shown += e[2].(string)
	}
	if shown != "é世\x1b[1m\r\nend\ufffd" {
		t.Errorf("%q was shown", shown)
	}
	if diff := cmp.Diff([]string{"101x31"}, sizes); diff != "" {
		t.Error(diff)
	}
}
