package executions_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// helperDir has this program serve a state folder, until it is killed.
const helperDir = "CAISSON_TEST_SERVE"

func isHelper() bool { return os.Getenv(helperDir) != "" }

// helper carries executions out, and notes each that begins in a file before it
// does anything.
func helper() {
	dir := os.Getenv(helperDir)
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	store, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir})
	if err != nil {
		fail(err)
	}
	begun, err := os.OpenFile(filepath.Join(dir, "begun"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fail(err)
	}
	var box *outbox.Outbox
	book, err := executions.New(executions.Config{
		Store: store, Poster: outbox.NewPoster(outbox.PosterConfig{Private: true}), Posted: func() { box.Posted() }, Dir: filepath.Join(dir, "executions"), Lock: filepath.Join(dir, "serve"), Workers: 4,
	})
	if err != nil {
		fail(err)
	}
	if box, err = outbox.New(outbox.Config{Store: store, Couriers: map[string]outbox.Courier{executions.Courier: book}}); err != nil {
		fail(err)
	}
	f := &fake{store: store, run: func(ctx context.Context, run sandbox.Run, s sandbox.Streams) (sandbox.Result, error) {
		if _, err := fmt.Fprintln(begun, run.Code); err != nil {
			return sandbox.Result{}, err
		}
		time.Sleep(20 * time.Millisecond)
		return echo(ctx, run, s)
	}}
	if err := book.Start(context.Background(), f); err != nil {
		fail(err)
	}
	fmt.Println("serves")
	select {}
}

// serveElsewhere serves a state folder in a process of its own.
func serveElsewhere(t *testing.T, dir string) (kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "serves\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
}

// A server that is killed in the middle of fifty executions, again and again, loses
// none, runs none twice, and has each called back, under one id.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	rounds := 3
	if enginetest.Soaking() {
		rounds = 30
	}
	hears := listen(t)
	p := open(t, t.TempDir(), &fake{}, nil)
	if err := p.box.Close(); err != nil { // only the server carries letters
		t.Fatal(err)
	}
	var ids []sandbox.ID
	for round := range rounds {
		for i := range 50 {
			ids = append(ids, p.submit(t, fmt.Sprintf("owner %d", i%3), calling(fmt.Sprintf("%d/%d", round, i), hears.URL)))
		}
		kill := serveElsewhere(t, p.dir)
		least := len(ids) - 45
		until(t, "under way", func() bool { return len(begun(t, p.dir)) >= least })
		kill()
	}
	kill := serveElsewhere(t, p.dir)
	defer kill()
	states := map[sandbox.ExecutionState]int{}
	for _, id := range ids {
		e, err := p.Execution(t.Context(), id, sandbox.Duration(time.Minute))
		if err != nil || !e.State.Over() {
			t.Fatalf("%+v, %v", e, err)
		}
		states[e.State]++
		if e.State == sandbox.ExecutionSucceeded && string(e.Result.Stdout) != e.Run.Code {
			t.Errorf("%s has another's answer: %q", e.Run.Code, e.Result.Stdout)
		}
		p.callback(t, id, sandbox.CallbackDelivered)
	}
	t.Logf("%d executions, %d kills: %v", len(ids), rounds, states)
	if states[sandbox.ExecutionLost] > 4*rounds || states[sandbox.ExecutionSucceeded]+states[sandbox.ExecutionLost] != len(ids) {
		t.Errorf("states: %v", states)
	}
	times := map[string]int{}
	for _, code := range begun(t, p.dir) {
		if times[code]++; times[code] > 1 {
			t.Errorf("%s ran twice", code)
		}
	}
	told := map[sandbox.ID]sandbox.ID{}
	for _, h := range hears.of("execution.ended") {
		id := h.body.Execution.ID
		if before, ok := told[id]; ok && before != h.body.Delivery {
			t.Errorf("%s was told under two ids", id)
		}
		told[id] = h.body.Delivery
	}
	if len(told) != len(ids) {
		t.Errorf("%d of %d were told", len(told), len(ids))
	}
}

// begun are the runs that began, in any server.
func begun(t *testing.T, dir string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "begun"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}
