package manager

import (
	"io"
	"regexp"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// mostAsked bounds the newest output that is looked at for a question.
const mostAsked = 64 << 10

// asked looks for questions in what an exec puts out, and answers them.
type asked struct {
	replies *io.PipeWriter
	wants   chan string // buffered

	mu      sync.Mutex
	expects []expected
	seen    [2][]byte // of each output, since its last answer
}

type expected struct {
	sandbox.Expect
	pattern *regexp.Regexp
	over    bool
}

// expecting lets streams answer what is asked. What it returns ends that.
func expecting(list []sandbox.Expect, s sandbox.Streams) (sandbox.Streams, func()) {
	if len(list) == 0 {
		return s, func() {}
	}
	r, w := io.Pipe()
	a := &asked{replies: w, wants: make(chan string, 256)}
	for _, e := range list {
		a.expects = append(a.expects, expected{Expect: e, pattern: regexp.MustCompile(e.Pattern)}) // checked before
	}
	go func() {
		for reply := range a.wants {
			if _, err := io.WriteString(w, reply); err != nil {
				continue // nobody reads any more: the rest is for nobody
			}
		}
		_ = w.Close() // never fails
	}()
	stdin := io.Reader(r)
	if s.Stdin != nil {
		stdin = io.MultiReader(s.Stdin, r)
	}
	s.Stdin = stdin
	s.Stdout, s.Stderr = &askedOutput{a, 0, s.Stdout}, &askedOutput{a, 1, s.Stderr}
	return s, func() {
		_ = r.Close() // never fails
		close(a.wants)
	}
}

// askedOutput is one output, looked through.
type askedOutput struct {
	a     *asked
	index int
	next  io.Writer // nil discards
}

func (o *askedOutput) Write(p []byte) (int, error) {
	if o.next != nil {
		if n, err := o.next.Write(p); err != nil {
			return n, err
		}
	}
	o.a.look(o.index, p)
	return len(p), nil
}

func (a *asked) look(i int, p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := append(a.seen[i], p...)
	if n := len(seen) - mostAsked; n > 0 {
		seen = seen[n:]
	}
	for again := true; again; {
		again = false
		for j := range a.expects {
			e := &a.expects[j]
			at := e.pattern.FindIndex(seen)
			if at == nil || e.over {
				continue
			}
			e.over, again, seen = e.Once, at[1] > 0, seen[at[1]:]
			select {
			case a.wants <- e.Reply:
			default: // it asks more than anybody could answer, and reads nothing
			}
			break
		}
	}
	a.seen[i] = seen
}
