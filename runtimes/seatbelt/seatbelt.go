// Package seatbelt writes the profile by which macOS's sandbox-exec holds a program:
// it may read what programs and their libraries need, write its own folders alone,
// start what is installed, and reach no network, no other process and no service
// but those that every program asks.
//
// It is a text and not a runtime yet, and has not been run on a Mac: the agent needs
// Linux, and docs/runtimes.md says what is missing.
package seatbelt

import (
	"path"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Folders are a sandbox's own. All of them are absolute and clean.
type Folders struct {
	Workspace, Home, Tmp string
	// Private is the agent's: nothing in it can be seen, wherever it lies.
	Private string
}

// readable are the places of programs, libraries and settings, none of which is a
// person's.
var readable = []string{
	"/System", "/usr", "/bin", "/sbin", "/Library/Frameworks", "/Library/Apple", "/Library/Developer/CommandLineTools", "/opt/homebrew", "/opt/local",
	"/private/etc/ssl", "/private/etc/localtime", "/private/etc/protocols", "/private/etc/services", "/private/var/db/timezone", "/private/var/db/dyld",
}

// devices are those that programs write to.
var devices = []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper"}

// Profile is the text for sandbox-exec -p: what it does not allow is denied. Errors:
// Invalid for a folder that is not absolute and clean, or is the root.
func Profile(f Folders) (string, error) {
	for _, dir := range []string{f.Workspace, f.Home, f.Tmp, f.Private} {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.ContainsRune(dir, 0) {
			return "", sandbox.Errorf(sandbox.Invalid, "%q is not a folder that a sandbox can have", dir).WithHint("give absolute, clean paths")
		}
	}
	own := []string{f.Workspace, f.Home, f.Tmp}
	var b strings.Builder
	b.WriteString("(version 1)\n(deny default)\n")
	b.WriteString("(allow process-fork)\n")
	rule(&b, "allow process-exec", "subpath", append(readable[:4:4], append(own, "/opt/homebrew", "/opt/local", "/Library/Developer/CommandLineTools")...))
	b.WriteString("(allow signal (target same-sandbox))\n(allow process-info* (target same-sandbox))\n")
	b.WriteString("(allow sysctl-read)\n(allow file-read-metadata)\n(allow file-read* (literal \"/\"))\n")
	rule(&b, "allow file-read*", "subpath", append(readable[:len(readable):len(readable)], own...))
	rule(&b, "allow file-read* file-ioctl", "literal", append(devices[:len(devices):len(devices)], "/dev/random", "/dev/urandom"))
	rule(&b, "allow file-write*", "subpath", own)
	rule(&b, "allow file-write-data", "literal", devices)
	b.WriteString("(allow mach-lookup (global-name \"com.apple.system.notification_center\") (global-name \"com.apple.system.opendirectoryd.libinfo\"))\n")
	// The last rule that fits counts: these stand whatever came before.
	rule(&b, "deny file-read* file-write*", "subpath", []string{f.Private})
	b.WriteString("(deny network*)\n")
	return b.String(), nil
}

// rule writes one rule for a list of places.
func rule(b *strings.Builder, what, how string, places []string) {
	b.WriteString("(" + what)
	for _, p := range places {
		b.WriteString("\n\t(" + how + " " + quote(p) + ")")
	}
	b.WriteString(")\n")
}

// quote is a string of the profile's language, a Scheme.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
