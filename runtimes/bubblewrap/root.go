//go:build linux

package bubblewrap

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// rootFolders are what a sandbox sees of the host besides /usr, where it is there:
// a link stays one. None of them holds what is a person's.
var rootFolders = []string{"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin"}

// settings are what programs need below /etc: of the loader, of interpreters, of
// time and names. What may hold a password or a token is not among them.
var settings = []string{
	"alternatives", "bash.bashrc", "debian_version", "fonts", "gai.conf", "host.conf", "inputrc", "java-*", "ld.so.cache", "ld.so.conf",
	"ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "nsswitch.conf", "os-release", "perl", "profile", "protocols",
	"python2*", "python3*", "redhat-release", "services", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "terminfo", "timezone",
}

// bind is a file or folder of the host's, seen at the same or another place.
type bind struct {
	Source string `json:"source"`
	Target string `json:"target"`
}

// rootLinks are those of [rootFolders] that are links on this host.
func rootLinks() (links []bind) {
	for _, dir := range rootFolders {
		if to, err := os.Readlink(dir); err == nil {
			links = append(links, bind{to, dir})
		}
	}
	return links
}

// rootBinds are the folders and settings of the host that every sandbox sees.
func rootBinds() []bind {
	binds := []bind{{"/usr", "/usr"}}
	for _, dir := range rootFolders {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() {
			binds = append(binds, bind{dir, dir})
		}
	}
	for _, name := range settings {
		found, _ := filepath.Glob(filepath.Join("/etc", name)) // the patterns are well formed
		for _, path := range found {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				binds = append(binds, bind{real, path})
			}
		}
	}
	return binds
}

func linkArgs(links []bind) (args []string) {
	for _, l := range links {
		args = append(args, "--symlink", l.Source, l.Target)
	}
	return args
}

// hostID stands for an image's digest: it changes when packages of the host do.
func hostID() (string, error) {
	sum := sha256.New()
	for _, path := range []string{"/etc/os-release", "/var/lib/dpkg/status", "/var/lib/rpm", "/lib/apk/db/installed", "/usr/bin", "/usr/local/bin"} {
		st, err := os.Stat(path)
		if err != nil {
			continue // of another distribution
		}
		fmt.Fprintf(sum, "%s %d %d\n", path, st.Size(), st.ModTime().UnixNano())
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

// lists are the files of names that a sandbox has in place of the host's, which
// tell who is there.
func lists(who sandbox.Identity) map[string]string {
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
