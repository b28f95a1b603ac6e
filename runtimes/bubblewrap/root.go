//go:build linux

package bubblewrap

import (
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/runtimes/local"
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

// rootLinks are those of [rootFolders] that are links on this host.
func rootLinks() (links []local.Bind) {
	for _, dir := range rootFolders {
		if to, err := os.Readlink(dir); err == nil {
			links = append(links, local.Bind{Source: to, Target: dir})
		}
	}
	return links
}

// rootBinds are the folders and settings of the host that every sandbox sees.
func rootBinds() []local.Bind {
	binds := []local.Bind{{Source: "/usr", Target: "/usr"}}
	for _, dir := range rootFolders {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() {
			binds = append(binds, local.Bind{Source: dir, Target: dir})
		}
	}
	for _, name := range settings {
		found, _ := filepath.Glob(filepath.Join("/etc", name)) // the patterns are well formed
		for _, path := range found {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				binds = append(binds, local.Bind{Source: real, Target: path})
			}
		}
	}
	return binds
}

func linkArgs(links []local.Bind) (args []string) {
	for _, l := range links {
		args = append(args, "--symlink", l.Source, l.Target)
	}
	return args
}
