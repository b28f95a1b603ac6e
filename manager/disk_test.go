package manager_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestDiskIsWhatHappened runs the same in a shell and in Python: what meets a full
// file system ends with that reason, and what finds one and leaves it alone does
// not.
func TestDiskIsWhatHappened(t *testing.T) {
	t.Parallel()
	const write = "f = open(%q, %q)\nf.write(b'x' * %d)\nf.close()\n"
	programs := []struct {
		name          string
		shell, python string
		met           bool
	}{
		{"nothing", "exit 1", "exit(1)", false},
		{"fill", "head -c 2000000 /dev/zero > /tmp/f", fmt.Sprintf(write, "/tmp/f", "wb", 2000000), true},
		{"leave it alone", "cat /tmp/f | wc -c; exit 1", "print(len(open('/tmp/f', 'rb').read())); exit(1)", false},
		{"write elsewhere", "echo x > /var/tmp/g; exit 1", fmt.Sprintf(write, "/var/tmp/g", "wb", 2) + "exit(1)", false},
		{"make another", "echo x > /tmp/g", fmt.Sprintf(write, "/tmp/g", "wb", 2), true},
		{"make one again", "head -c 2000000 /dev/zero > /tmp/f", fmt.Sprintf(write, "/tmp/f", "wb", 2000000), true},
		{"append", "echo x >> /tmp/f", fmt.Sprintf(write, "/tmp/f", "ab", 2), true},
		{"and leave it alone again", "exit 1", "exit(1)", false},
		{"make room", "rm /tmp/*; exit 1", "import os\n[os.remove('/tmp/' + n) for n in os.listdir('/tmp')]\nexit(1)", false},
	}
	b := openBox(t, manager.OpenOptions{Language: "python", Limits: sandbox.Limits{Tmp: sandbox.MiB}})
	for _, lang := range []string{"shell", "python"} {
		for _, p := range programs {
			run := sandbox.Run{Command: []string{"sh", "-c", p.shell}, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}}
			if lang == "python" {
				run = sandbox.Run{Code: p.python, ExecLimits: sandbox.ExecLimits{Timeout: sandbox.Duration(time.Minute)}}
			}
			res := b.run(t, run)
			want := sandbox.ReasonExited
			if p.met {
				want = sandbox.ReasonDisk
			}
			if res.Reason != want || contains(res.Events, "disk") != p.met || res.Code == 0 {
				t.Errorf("%s, %s: ended with %s, code %d, events %q; %.200q", lang, p.name, res.Reason, res.Code, res.Events, res.Stderr)
			}
		}
	}
}
