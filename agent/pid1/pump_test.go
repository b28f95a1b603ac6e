//go:build linux

package pid1

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTrail writes to an exec's output after its end: far beyond its cap, and
// nothing stops the writer. The same after one that ended at its cap.
func TestTrail(t *testing.T) {
	t.Parallel()
	const most = 1000
	for name, before := range map[string]int{"below the cap": most / 2, "beyond it": 2 * most} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fds [2]int
			if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
				t.Fatal(err)
			}
			file, err := parentEnd(fds[0], "stdout")
			if err != nil {
				t.Fatal(err)
			}
			w := os.NewFile(uintptr(fds[1]), "server")
			write := func(n int) {
				t.Helper()
				if _, err := w.Write(make([]byte, n)); err != nil {
					t.Errorf("the server's write: %v", err)
				}
			}
			limits := 0
			p := &pump{file: file, out: newOutputs(false, false), max: most, drained: make(chan struct{}), onLimit: func() { limits++ }}
			write(before)
			go p.run()
			p.finish()
			<-p.drained
			hits := limits
			trailed := make(chan struct{})
			go func() {
				defer close(trailed)
				p.trail()
			}()
			for range 10 {
				write(200 << 10)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			<-trailed
			if stdout, _ := p.out.totals(); stdout != min(int64(before), most) || limits != hits {
				t.Errorf("%d bytes are kept; the cap was met %d times, %d of them after the end", stdout, limits, limits-hits)
			}
		})
	}
}
