package main

import (
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/config"
)

// settings are what caisson.yaml may set besides flags. Each has its variable:
// state-dir is CAISSON_STATE_DIR.
var settings = []string{"state-dir", "runtime-dir", "agent", "log", "audit-text", "policy-data", "policy-rules", "starts", "on-denied-start", "starts-required",
	"approve-timeout", "approver", "approve-webhook", "remote",
	"changes-file", "changes-command", "changes-webhook", "alerts-command", "alerts-webhook", "otlp-endpoint", "executions-workers", "executions-queue", "executions-keep", "callbacks-private"}

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
	own := a.getenv("XDG_CONFIG_HOME")
	if own == "" && a.getenv("HOME") != "" {
		own = filepath.Join(a.getenv("HOME"), ".config")
	}
	list := []string{"/etc/caisson/caisson.yaml"}
	if filepath.IsAbs(own) {
		list = append([]string{filepath.Join(own, "caisson", "caisson.yaml")}, list...)
	}
	return list
}
