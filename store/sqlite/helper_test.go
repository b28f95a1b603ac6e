package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// The test binary is its own helper: another process on a state folder. Its
// variable holds "FOLDER COUNT"; it writes so many sessions, each with an
// event, and says each on standard output once it is durable.
const helperVar = "CAISSON_TEST_STORE_HELPER"

func isHelper() bool { return os.Getenv(helperVar) != "" }

func helper() {
	dir, count, _ := strings.Cut(os.Getenv(helperVar), " ")
	n, err := strconv.Atoi(count)
	if err == nil {
		err = write(dir, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string, n int) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range n {
		name := fmt.Sprintf("p%d-%d", os.Getpid(), i)
		id := sandbox.NewID()
		err := s.Apply(ctx, sandbox.Transaction{
			CreateSession: &sandbox.Session{ID: id, Name: name},
			Events:        []sandbox.Event{{Time: time.Now(), Kind: sandbox.EventSessionCreated, Session: name}},
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Println(name); err != nil {
			return err
		}
	}
	return nil
}

// start begins a helper; what it confirmed comes line by line.
func start(t testing.TB, dir string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", helperVar, dir, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}
