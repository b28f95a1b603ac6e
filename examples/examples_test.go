// Package examples_test runs the programs of this folder as a user would: by
// the built caisson command, each in a container of its own.
package examples_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
)

var programs = []struct {
	dir  string
	args []string // after "caisson run"
}{
	{"report", []string{"--file", "sales.csv", "report.py", "--", "sales.csv", "report.md"}},
	{"latency", []string{"--file", "access.log", "latency.js", "--", "access.log"}},
	{"words", []string{"--file", "caisson.txt", "words.sh", "--", "caisson.txt"}},
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t)
	caisson := command(t)
	for _, p := range programs {
		t.Run(p.dir, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(filepath.Join(p.dir, "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), caisson, append([]string{"run"}, p.args...)...)
			cmd.Dir = p.dir
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			got, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("output differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotebook runs the session example, on a state of its own.
func TestNotebook(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t)
	base, err := os.MkdirTemp("/tmp", "cais") // short: a socket's path is bounded
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	want, err := os.ReadFile("notebook/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "notebook/notebook.sh")
	cmd.Env = append(os.Environ(), "CAISSON="+command(t), "CAISSON_STATE_DIR="+base, "CAISSON_RUNTIME_DIR="+base+"/s")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("output differs (-want +got):\n%s", diff)
	}
}

// TestEmbed builds the Go program, which is a module of its own, and runs it.
func TestEmbed(t *testing.T) {
	t.Parallel()
	dockertest.Engine(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "embed")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = "embed", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command(t))+":"+os.Getenv("PATH"), "CAISSON_STATE_DIR="+filepath.Join(dir, "state"))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "exited, code 0: 42\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestReflection has broken solutions revised, and holds each round to what it should be.
func TestReflection(t *testing.T) { built(t, "reflection") }

// TestTools has a program search, read and plot over tools, and holds what it returns,
// calls and draws to what it should be.
func TestTools(t *testing.T) { built(t, "tools") }

// built builds a program of this module and runs it.
func built(t *testing.T, name string) {
	t.Parallel()
	dockertest.Engine(t)
	dir := t.TempDir()
	program := filepath.Join(dir, name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(name, "want.txt"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command(t))+":"+os.Getenv("PATH"), "CAISSON_STATE_DIR="+filepath.Join(dir, "state"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("output differs (-want +got):\n%s", diff)
	}
}

// command is the caisson command that `make build` has built.
func command(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../bin/caisson")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv(dockertest.Require) == "1" {
			t.Fatalf("bin/caisson is not built: %v", err)
		}
		t.Skip("needs bin/caisson: make build")
	}
	return path
}

// TestReportIsRight adds the sales up by another way than report.py does.
func TestReportIsRight(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("report/sales.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var cents, sales int
	for _, row := range rows[1:] {
		quantity, err1 := strconv.Atoi(row[3])
		price, err2 := strconv.Atoi(strings.Replace(row[4], ".", "", 1))
		if err1 == nil && err2 == nil {
			sales, cents = sales+1, cents+quantity*price
		}
	}
	text := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	want := fmt.Sprintf("%d sales, turnover %s,%s,", sales, text[:len(text)-6], text[len(text)-6:])
	got, err := os.ReadFile("report/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), want) {
		t.Errorf("the report does not say %q", want)
	}
}
