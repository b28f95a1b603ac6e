//go:build linux

package pid1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
)

const (
	// answerPatience is how long a program may take to say what it hands back.
	answerPatience = 5 * time.Second
	// mostAnswers bounds those that wait for the host.
	mostAnswers = 16
)

// answering is the socket by which an exec hands something back.
type answering struct {
	ln   net.Listener
	mu   sync.Mutex
	over bool
	file *os.File // nil until there is one
	size int64
}

// openAnswer makes the socket of an exec that is about to start, and hears it.
func (a *Agent) openAnswer(ex *exec) error {
	ln, err := a.listenFor(ex, path.Join(wire.StageDir, ex.req.ID, wire.AnswerSocket))
	if err != nil {
		return err
	}
	ex.answer = &answering{ln: ln}
	go ex.answer.hear(a, ex)
	return nil
}

// hear takes the first answer that comes from a process of the exec.
func (w *answering) hear(a *Agent, ex *exec) {
	for {
		c, err := w.ln.Accept()
		if err != nil {
			return // its end
		}
		if c, ok := c.(*net.UnixConn); ok && a.belongs(c, ex) {
			w.take(c, ex.req.Answer)
		}
		_ = c.Close() // whoever waits for a byte sees whether it came
	}
}

func (w *answering) take(c *net.UnixConn, most int64) {
	_ = c.SetDeadline(time.Now().Add(answerPatience)) // fails with what follows
	f := receiveFile(c)
	if f == nil {
		return
	}
	size, err := wire.Sealed(f, most)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.over || w.file != nil {
		_ = f.Close() // it was not ours to keep
		return
	}
	w.file, w.size = f, size
	_, _ = c.Write([]byte{1}) // who has gone meanwhile has handed it over
}

// receiveFile takes the one descriptor that comes with a byte, nil where none does.
func receiveFile(c *net.UnixConn) *os.File {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4)) // no room for more: the kernel closes them
	_, oobn, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "answer")
}

// end closes the socket and returns what was handed over, nil where nothing was.
func (w *answering) end() (*os.File, int64) {
	if w == nil {
		return nil, 0
	}
	_ = w.ln.Close() // a second time after a start that failed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	return w.file, w.size
}

// answers are what ended execs have handed back, and the host has not taken, the
// oldest first. The zero value is ready.
type answers struct {
	mu   sync.Mutex
	held []heldAnswer
}

type heldAnswer struct {
	id   string
	file *os.File
}

// keep takes over what an exec hands back, and returns its size. What is small is
// returned whole, and kept by nobody.
func (l *answers) keep(ex *exec) (size int64, small []byte) {
	f, size := ex.answer.end()
	if f == nil {
		return 0, nil
	}
	if size <= wire.SmallAnswer {
		small = make([]byte, size)
		if _, err := f.ReadAt(small, 0); err == nil {
			_ = f.Close() // it is read
			return size, small
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) >= mostAnswers {
		_ = l.held[0].file.Close() // its host has gone
		l.held = slices.Delete(l.held, 0, 1)
	}
	l.held = append(l.held, heldAnswer{ex.req.ID, f})
	return size, nil
}

// drop forgets all of them.
func (l *answers) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held {
		_ = h.file.Close() // nobody asks for it any more
	}
	l.held = nil
}

// take hands out an exec's answer, which is its caller's to close.
func (l *answers) take(id string) *os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.held, func(h heldAnswer) bool { return h.id == id })
	if i < 0 {
		return nil
	}
	f := l.held[i].file
	l.held = slices.Delete(l.held, i, i+1)
	return f
}

// passAnswer gives an exec's answer to the host as a file. Where that fails it can
// still be had by a call.
func (a *Agent) passAnswer(conn net.Conn, id string) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return
	}
	f := a.answers.take(id)
	if f == nil {
		return
	}
	if _, _, err := c.WriteMsgUnix([]byte{1}, unix.UnixRights(int(f.Fd())), nil); err != nil {
		a.answers.mu.Lock()
		defer a.answers.mu.Unlock()
		a.answers.held = append(a.answers.held, heldAnswer{id, f})
		return
	}
	_ = f.Close() // the host has its own
}

// callAnswer sends an exec's answer.
func (a *Agent) callAnswer(s *yamux.Stream, req *wire.Answer) {
	f := a.answers.take(req.ID)
	if f == nil {
		fail(s, "not_found", fmt.Errorf("exec %s has handed back nothing", req.ID))
		return
	}
	defer f.Close()
	_, err := f.Seek(0, io.SeekStart)
	var n int64
	if err == nil {
		n, err = io.CopyBuffer(wire.DataWriter{W: s}, struct{ io.Reader }{f}, make([]byte, wire.MaxChunk))
	}
	if err != nil {
		fail(s, "internal", errors.Join(errors.New("send what was handed back"), err))
		return
	}
	reply(s, wire.Reply{Bytes: n})
}
