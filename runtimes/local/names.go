//go:build linux

package local

import (
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Names are the files of names that a sandbox has in place of the host's, which
// tell who is there.
func Names(who sandbox.Identity) map[string]string {
	users := "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nwww-data:x:33:33:www-data:/var/www:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
	group := "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\nnogroup:x:65534:\n"
	for _, u := range []struct {
		name string
		uid  int
	}{{"sandbox", who.UID}, {"runner", who.RunnerUID}} {
		id := strconv.Itoa(u.uid)
		users += strings.Join([]string{u.name, "x", id, id, u.name, sandbox.HomeDir, "/bin/sh"}, ":") + "\n"
		group += strings.Join([]string{u.name, "x", id, ""}, ":") + "\n"
	}
	return map[string]string{"passwd": users, "group": group, "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n", "hostname": "sandbox\n"}
}
