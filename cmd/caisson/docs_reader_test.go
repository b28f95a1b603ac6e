package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reader types commands of documents into one shell.
type reader struct {
	in  io.WriteCloser
	out *bufio.Reader
	// ids are those that documents show, and what they are here.
	ids map[string]string
}

func startReader(t *testing.T, cmd *exec.Cmd) *reader {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &reader{in: in, out: bufio.NewReader(out), ids: map[string]string{}}
}

// say runs a command that has to succeed.
func (r *reader) say(t *testing.T, command string) string {
	t.Helper()
	out, code := r.typed(t, command)
	if code != 0 {
		t.Errorf("%s: exit code %d: %s", command, code, out)
	}
	return out
}

// typed runs a command without anybody at its input.
func (r *reader) typed(t *testing.T, command string) (string, int) {
	t.Helper()
	const mark = "\x01end "
	if _, err := fmt.Fprintf(r.in, "{ %s\n} </dev/null\nprintf '%s%%d\\n' $?\n", command, `\001end `); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for {
		line, err := r.out.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out.String())
		}
		before, code, ended := strings.Cut(strings.TrimSuffix(line, "\n"), mark)
		if !ended {
			out.WriteString(line)
			continue
		}
		n, err := strconv.Atoi(code)
		if err != nil {
			t.Fatalf("%s: %q", command, line)
		}
		return out.String() + before, n
	}
}

var (
	id      = regexp.MustCompile(`\b[0-9a-f]{12,64}\b`)
	heredoc = regexp.MustCompile(`<<'?(\w+)`)
	prefix  = regexp.MustCompile(`\b[0-9a-f]{4,64}\b`)
)

// run runs a block and compares what comes with what is shown.
func (r *reader) run(t *testing.T, b block) {
	t.Helper()
	r.say(t, "cd $TOP")
	for _, s := range b.steps {
		command := prefix.ReplaceAllStringFunc(s.command, func(shown string) string {
			for known, real := range r.ids {
				if strings.HasPrefix(known, shown) {
					return real[:len(shown)]
				}
			}
			return shown
		})
		out, code := r.typed(t, command)
		got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if out == "" {
			got = nil
		}
		if code != 0 && len(s.output) == 0 {
			t.Errorf("%s\n$ %s: exit code %d\n%s", b.where, command, code, out)
			continue
		}
		if b.compared && !r.alike(s.output, got) {
			t.Errorf("%s\n$ %s\nis shown to put out\n\t%s\nand puts out\n\t%s", b.where, command, strings.Join(s.output, "\n\t"), strings.Join(got, "\n\t"))
		}
	}
}

// alike compares lines, and learns the ids. A line … stands for any.
func (r *reader) alike(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		for i := range len(got) + 1 {
			if r.alike(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	if len(got) == 0 || normal(want[0]) != normal(got[0]) {
		return false
	}
	ids := id.FindAllString(got[0], -1)
	for i, shown := range id.FindAllString(want[0], -1) {
		if i < len(ids) && len(ids[i]) == len(shown) {
			r.ids[shown] = ids[i]
		}
	}
	return r.alike(want[1:], got[1:])
}

// normals are what differs from run to run, and what is compared in its place.
var normals = []struct {
	is *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
	{id, "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b[0-9.]+(ms|m?s)\b`), "SPAN"},
	{regexp.MustCompile(`\b[0-9.]+ [KMG]iB\b`), "SIZE"},
	{regexp.MustCompile(`\b(uid|gid|groups)=\S+`), "$1=N"},
	{regexp.MustCompile(`, by (overlay|copy).*`), ", by WAY"}, // what the engine's file system can
	{regexp.MustCompile(`[ \t]+`), " "},
}

func normal(line string) string {
	for _, n := range normals {
		line = n.is.ReplaceAllString(line, n.by)
	}
	return strings.TrimSpace(line)
}
