package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// relay is a stream to an agent through an exec of the engine's, which frames
// what comes out: stream, three zeroes, length, bytes. What the relay's program
// says on standard error is kept for its error.
type relay struct {
	net.Conn // of the hijacked exec, for what goes in
	resp     types.HijackedResponse
	made     time.Time

	mu    sync.Mutex
	timer *time.Timer // of the deadline that is set; nil without one

	rest int    // bytes of the frame that is being read
	errs []byte // of standard error
	once sync.Once
}

// maxRelayError is how much is kept of what a relay says.
const maxRelayError = 4 << 10

// relayed is the first byte of a relay that has reached its agent: package
// agent/wire has the same.
const relayed = 0x06

// spareLife is how long an agent lets a connection wait for its first word, less
// what it may take to say it.
const spareLife = 2 * time.Second

// dialRemote returns a stream to the agent.
func (i *Instance) dialRemote(ctx context.Context) (net.Conn, error) {
	i.mu.Lock()
	spare := i.spare
	i.spare = nil
	i.mu.Unlock()
	if spare != nil {
		if time.Since(spare.made) < spareLife {
			return spare, nil
		}
		_ = spare.Close()
	}
	c, err := i.openRelay(ctx)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (i *Instance) dropSpare() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.spare != nil {
		_ = i.spare.Close()
		i.spare = nil
	}
}

// openRelay starts a relay and waits until it has reached the agent.
func (i *Instance) openRelay(ctx context.Context) (*relay, error) {
	fail := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return sandbox.Errorf(sandbox.Unavailable, "connect to the agent of sandbox %s: %w", i.handle.ID.Short(), err)
	}
	api, err := i.r.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	made, err := api.ContainerExecCreate(ctx, i.handle.Name, container.ExecOptions{
		User: "0:0", AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: []string{path.Join(agentDir, agentName), "connect"},
	})
	if err != nil {
		return nil, fail(dockerclient.Wrap(err, "make a relay"))
	}
	resp, err := api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, fail(dockerclient.Wrap(err, "start a relay"))
	}
	c := &relay{Conn: resp.Conn, resp: resp, made: time.Now()}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	first := make([]byte, 1)
	_, err = io.ReadFull(c, first)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil && first[0] != relayed {
		err = errors.New("it answers as no relay does")
	}
	if err != nil {
		if said := strings.TrimSpace(string(c.errs)); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		_ = c.Close()
		return nil, fail(err)
	}
	return c, nil
}

// Read returns what the relay's program wrote to standard output.
func (c *relay) Read(p []byte) (int, error) {
	for c.rest == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	n, err := c.resp.Reader.Read(p[:min(len(p), c.rest)])
	c.rest -= n
	return n, err
}

// nextFrame reads frames until one of standard output begins.
func (c *relay) nextFrame() error {
	var head [8]byte
	// A deadline amid a head would lose the place: who sets one gives the
	// connection up with it.
	if _, err := io.ReadFull(c.resp.Reader, head[:]); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[4:]))
	switch head[0] {
	case 1:
		c.rest = size
		return nil
	case 2:
		said, err := io.ReadAll(io.LimitReader(c.resp.Reader, int64(size)))
		c.errs = append(c.errs, said[:min(len(said), maxRelayError-min(len(c.errs), maxRelayError))]...)
		return err
	}
	return fmt.Errorf("a relay's stream %d is none", head[0])
}

// CloseWrite tells the agent that nothing more comes.
func (c *relay) CloseWrite() error { return c.resp.CloseWrite() }

// SetDeadline has the relay end at a time, at once where it has passed; the zero
// time takes that back. The connection below is no help: one through ssh takes
// deadlines and keeps none. Errors: net.ErrClosed after the end.
func (c *relay) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && !c.timer.Stop() {
		return net.ErrClosed
	}
	c.timer = nil
	if !t.IsZero() {
		c.timer = time.AfterFunc(time.Until(t), func() { _ = c.Close() })
	}
	return nil
}

// SetReadDeadline is SetDeadline: there is no half of a relay.
func (c *relay) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline is SetDeadline.
func (c *relay) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

// Close ends the relay. It is idempotent.
func (c *relay) Close() error {
	c.once.Do(c.resp.Close)
	return nil
}
