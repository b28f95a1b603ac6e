package docker

import (
	"bufio"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
)

// forgetful takes deadlines and keeps none, as connections through ssh do.
type forgetful struct{ net.Conn }

func (forgetful) SetDeadline(time.Time) error      { return nil }
func (forgetful) SetReadDeadline(time.Time) error  { return nil }
func (forgetful) SetWriteDeadline(time.Time) error { return nil }

func newTestRelay(t *testing.T) *relay {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = far.Close() })
	c := forgetful{near}
	r := &relay{Conn: c, resp: types.HijackedResponse{Conn: c, Reader: bufio.NewReader(c)}}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRelayDeadline(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{"passed": time.Unix(1, 0), "ahead": time.Now().Add(50 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestRelay(t)
			if err := r.SetDeadline(at); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := r.Read(make([]byte, 1))
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("read something")
				}
			case <-time.After(time.Minute):
				t.Fatal("it reads on")
			}
			if err := r.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("taken back too late: %v", err)
			}
		})
	}
	r := newTestRelay(t)
	if err := errors.Join(r.SetDeadline(time.Now().Add(time.Hour)), r.SetReadDeadline(time.Time{})); err != nil {
		t.Fatal(err)
	}
	if r.timer != nil {
		t.Error("the deadline still stands")
	}
}
