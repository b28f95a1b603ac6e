package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestQuotas(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/c.yaml", []byte("version: 1\nquotas:\n  default: {execs: 3}\n  owners: {ann: {memory: 2g}}\n  total: {sandboxes: 9, cpus: 1.5}\n  wait: 2m\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := sandbox.Quotas{
		Default: sandbox.Quota{Execs: 3}, Owners: map[string]sandbox.Quota{"ann": {Memory: 2 * sandbox.GiB}},
		Total: sandbox.Quota{Sandboxes: 9, CPUs: 1.5}, Wait: sandbox.Duration(2 * time.Minute),
	}
	if !reflect.DeepEqual(f.Quotas, want) {
		t.Errorf("%+v", f.Quotas)
	}
	if f, err = config.Parse("/c.yaml", []byte("version: 1\n")); err != nil || f.Quotas.Wait != sandbox.Duration(30*time.Second) {
		t.Errorf("without a word of it: %v, %+v", err, f.Quotas)
	}
	for text, why := range map[string]string{
		"quotas: {total: {disk: 1g}}": "of all together", "quotas: {wait: long}": "wait is", "quotas: {wait: -1s}": "wait is", "quotas: {total: {execs: -1}}": "negative",
	} {
		if _, err := config.Parse("/c.yaml", []byte("version: 1\n"+text+"\n")); !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	f, err := config.Parse("/c.yaml", []byte("version: 1\npool: {python: 2, python/bubblewrap: 3, node: 0}\n"))
	want := []sandbox.PoolWant{{Language: "python", Size: 2}, {Language: "python", Runtime: "bubblewrap", Size: 3}}
	if err != nil || !reflect.DeepEqual(f.Pool, want) {
		t.Errorf("%v, %+v", err, f)
	}
	for _, text := range []string{"pool: 3", "pool: {python: many}", "pool: {python: -1}", "pool: {python/: 1}", "pool: {/docker: 1}", "pool: {python: 1, python/: 1}", "pool: {python: 100000}"} {
		if _, err := config.Parse("/c.yaml", []byte("version: 1\n"+text+"\n")); !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), "line 2: pool: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
