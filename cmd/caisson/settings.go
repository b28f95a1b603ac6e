package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/images"
)

// settings are what caisson.yaml may set besides flags. Each has its variable:
// state-dir is CAISSON_STATE_DIR.
var settings = []string{"state-dir", "runtime-dir", "agent", "log", "audit-text", "policy-data", "policy-rules",
	"approve-timeout", "approver", "approve-webhook", "remote",
	"changes-file", "changes-command", "changes-webhook"}

// readFile reads the file of settings: the one that is named, or else the
// user's, or else the machine's. One in the working directory is not looked
// for: it may have come with the code that is to be run.
func (a *app) readFile(name string) (*config.File, error) {
	a.file = &config.File{}
	if name == "" {
		for _, candidate := range a.usualFiles() {
			if _, err := os.Stat(candidate); err == nil {
				name = candidate
				break
			}
		}
	}
	if name == "" {
		return a.file, nil
	}
	file, err := config.Load(name)
	if err != nil {
		return nil, err
	}
	a.file = file
	return file, nil
}

func (a *app) usualFiles() []string {
	own := a.environ("XDG_CONFIG_HOME")
	if own == "" && a.environ("HOME") != "" {
		own = filepath.Join(a.environ("HOME"), ".config")
	}
	list := []string{"/etc/caisson/caisson.yaml"}
	if filepath.IsAbs(own) {
		list = append([]string{filepath.Join(own, "caisson", "caisson.yaml")}, list...)
	}
	return list
}

// setting is what the file says for a variable, or "".
func (a *app) setting(variable string) string {
	name, ours := strings.CutPrefix(variable, "CAISSON_")
	if !ours || a.file == nil {
		return ""
	}
	values, _ := a.file.Values("", strings.ToLower(strings.ReplaceAll(name, "_", "-")))
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// catalogue is the embedded one with what the file adds to it.
func (a *app) catalogue() (*images.Catalogue, error) {
	if a.file == nil {
		a.file = &config.File{}
	}
	if a.file.Catalogue == nil {
		return images.Builtin(), nil
	}
	c, err := images.Builtin().Extend(a.file.Catalogue, filepath.Dir(a.file.Name))
	if err != nil {
		return nil, a.file.Bad(0, err)
	}
	return c, nil
}
