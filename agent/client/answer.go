package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// AnswerSocket is the name beside an exec's staged files of the socket by which it
// hands something back: see [Command].Answer.
const AnswerSocket = wire.AnswerSocket

// Answer writes what an exec has handed back to w, which has most bytes at most, and
// returns how many it had. It is told once. Errors: NotFound, Unavailable.
func (c *Client) Answer(ctx context.Context, id sandbox.ID, most int64, w io.Writer) (int64, error) {
	s, err := c.open(ctx, wire.Request{Op: wire.OpAnswer, Answer: &wire.Answer{ID: string(id)}})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Unix(1, 0)) })()
	var n int64
	r, err := transfer(s, func(b []byte) error {
		if n+int64(len(b)) > most {
			return broken("read an answer", fmt.Errorf("%w: more than %d bytes", wire.ErrFrame, most))
		}
		m, err := w.Write(b)
		n += int64(m)
		return err
	})
	if err == nil && r.Bytes != n {
		err = broken("read an answer", fmt.Errorf("%w: %d bytes promised, %d came", wire.ErrFrame, r.Bytes, n))
	}
	return n, orContext(ctx, err)
}

// TakeAnswer is [Client.Answer] over a connection of its own, which it closes: what was
// handed back comes as a file in memory that nobody can change any more, and which its
// caller closes. Errors: Unavailable, where it is to be had by [Client.Answer], if at
// all.
func TakeAnswer(ctx context.Context, conn net.Conn, secret []byte, id sandbox.ID, most int64) (*os.File, error) {
	defer conn.Close()
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, sandbox.Errorf(sandbox.Unavailable, "no file comes over this connection")
	}
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if err := c.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return nil, broken("take an answer", err)
	}
	if err := wire.WriteMessage(c, wire.TypeHello, wire.Hello{Version: wire.Version, Secret: secret, Answer: string(id)}); err != nil {
		return nil, broken("take an answer", err)
	}
	f, err := receiveFile(c)
	if err != nil {
		return nil, broken("take an answer", err)
	}
	if _, err := wire.Sealed(f, most); err != nil {
		return nil, errors.Join(broken("take an answer", err), f.Close())
	}
	return f, nil
}

// receiveFile takes the one file that comes with a byte.
func receiveFile(c *net.UnixConn) (*os.File, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4)) // no room for more: the kernel closes them
	_, oobn, _, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, err
	}
	return fileOf(oob[:oobn])
}

// fileOf is the one file that came with a message.
func fileOf(oob []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no file came"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no file came"), err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "from the agent"), nil
}
