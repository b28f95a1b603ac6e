//go:build linux

package bubblewrap

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/caisson-dev/caisson/runtimes/local"
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

// root is what a sandbox of an image sees: this host's folders where that is the
// host, and what was unpacked of it else. Errors: NotFound, Unsupported.
func (r *Runtime) root(image sandbox.Image) (binds, links []local.Bind, err error) {
	if image.Ref == local.HostImage {
		return rootBinds(), rootLinks(), nil
	}
	if r.cfg.Root == nil {
		return nil, nil, sandbox.Errorf(sandbox.Unsupported, "the %s runtime has no image %s", Name, image.Ref).WithHint("use --runtime docker")
	}
	root, err := r.cfg.Root(image.ID)
	if err != nil {
		return nil, nil, err
	}
	return unpackedRoot(root.Path)
}

// ownPlaces are below the root of every sandbox and never an image's; what /etc has
// is bound one by one, so that caisson's own names stand among it.
var ownPlaces = []string{"dev", "etc", "home", "proc", "run", "sys", "tmp", "workspace"}

// unpackedRoot are the folders, files and links of an unpacked image.
func unpackedRoot(dir string) (binds, links []local.Bind, err error) {
	own := slices.Concat(ownPlaces, []string{".dockerenv"})
	for _, below := range []struct {
		at  string
		own []string
	}{{"", own}, {"etc", []string{"passwd", "group", "hosts", "hostname", "resolv.conf", "mtab"}}} {
		entries, err := os.ReadDir(filepath.Join(dir, below.at))
		if err != nil {
			return nil, nil, sandbox.Errorf(sandbox.NotFound, "read an unpacked image: %w", err).WithHint("unpack it again: caisson images unpack")
		}
		for _, e := range entries {
			bind := local.Bind{Source: filepath.Join(dir, below.at, e.Name()), Target: filepath.Join("/", below.at, e.Name())}
			switch {
			case slices.Contains(below.own, e.Name()):
			case e.Type()&os.ModeSymlink != 0:
				if bind.Source, err = os.Readlink(bind.Source); err != nil {
					return nil, nil, sandbox.Errorf(sandbox.NotFound, "read an unpacked image: %w", err)
				}
				links = append(links, bind)
			default:
				binds = append(binds, bind)
			}
		}
	}
	return binds, links, nil
}

func linkArgs(links []local.Bind) (args []string) {
	for _, l := range links {
		args = append(args, "--symlink", l.Source, l.Target)
	}
	return args
}
