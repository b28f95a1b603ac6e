//go:build linux

package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// Who can make no namespaces is told the cause, and what mends it.
func TestNoNamespaces(t *testing.T) {
	t.Parallel()
	const denied = "bwrap: Creating new namespace failed: Operation not permitted"
	for name, tt := range map[string]struct {
		files map[string]string
		root  bool
		said  string
		cause string
		mend  string
	}{
		"debian's switch":  {map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, false, denied, "unprivileged_userns_clone is 0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		"none at all":      {map[string]string{"proc/sys/user/max_user_namespaces": "0\n"}, false, "bwrap: Creating new namespace failed: No space left on device", "max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=15000"},
		"ubuntu":           {map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, false, "bwrap: setting up uid map: Permission denied", "AppArmor", "apparmor_parser -r /etc/apparmor.d/bwrap"},
		"switches are off": {map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n", "proc/sys/kernel/unprivileged_userns_clone": "1\n"}, false, denied, "does not say", "dmesg"},
		"root is allowed":  {map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"}, true, denied, "does not say", "dmesg"},
		"a container":      {map[string]string{".dockerenv": ""}, false, denied, "a container", "--security-opt seccomp=unconfined"},
		"as root in one":   {map[string]string{"run/.containerenv": ""}, true, denied, "a container", "--privileged"},
		"a covered /proc":  {map[string]string{".dockerenv": ""}, false, "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "covers parts of /proc", "systempaths=unconfined"},
		"a filter":         {map[string]string{"proc/self/status": "Name:\tx\nSeccomp:\t2\n"}, false, denied, "a filter of system calls", "RestrictNamespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Host{Root: t.TempDir(), User: !tt.root}
			for file, text := range tt.files {
				path := filepath.Join(h.Root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := NoNamespaces("bwrap", tt.said, h)
			if sandbox.KindOf(err) != sandbox.Unavailable || !strings.Contains(err.Error(), tt.cause) || !strings.Contains(err.Error(), tt.said) || !strings.Contains(sandbox.HintOf(err), tt.mend) {
				t.Errorf("%v\nhint: %s", err, sandbox.HintOf(err))
			}
		})
	}
}
