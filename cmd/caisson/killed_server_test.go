package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// told has which callbacks came for which executions.
type told struct {
	*httptest.Server
	mu   sync.Mutex
	ends map[sandbox.ID]map[sandbox.ID]bool // deliveries by execution
}

func listenForEnds(t *testing.T) *told {
	t.Helper()
	h := &told{ends: map[sandbox.ID]map[sandbox.ID]bool{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var news struct {
			Event     string
			Delivery  sandbox.ID
			Execution struct{ ID sandbox.ID }
		}
		if err := json.NewDecoder(r.Body).Decode(&news); err != nil || news.Event != "execution.ended" {
			t.Errorf("%+v, %v", news, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.ends[news.Execution.ID] == nil {
			h.ends[news.Execution.ID] = map[sandbox.ID]bool{}
		}
		h.ends[news.Execution.ID][news.Delivery] = true
	}))
	t.Cleanup(h.Close)
	return h
}

// TestKilledServer kills a server under executions, in sandboxes of their own and in a
// session, again and again: none is lost but those that ran alone, none runs twice,
// each is called back, and nothing is left of them.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	rounds, each := 3, 14
	if enginetest.Soaking() {
		rounds, each = 30, 50
	}
	const workers = 4
	kit, base := place(t)
	config, local := base+"/caisson.yaml", "unix://"+base+"/srv.sock"
	if err := os.WriteFile(config, []byte(fmt.Sprintf("version: 1\ndefaults:\n  executions-workers: %d\n  callbacks-private: 1\n", workers)), 0o600); err != nil {
		t.Fatal(err)
	}
	hears := listenForEnds(t)
	serve := func() *process {
		t.Helper()
		p := start(t, kit, base, "--config", config, "serve", "--listen", local)
		p.await(t, local)
		return p
	}
	asks := func(method, path string, in, out any) {
		t.Helper()
		if code := ask(t, local, method, path, "", in, out); code < 200 || code > 299 {
			t.Fatalf("%s %s: %d", method, path, code)
		}
	}
	server := serve()
	asks("POST", "/v1/sessions", map[string]any{"name": "work", "language": "shell"}, nil)
	said, inSession := map[sandbox.ID]string{}, 0 // what each is to put out
	over := func() (n int) {
		hears.mu.Lock()
		defer hears.mu.Unlock()
		return len(hears.ends)
	}
	for round := range rounds {
		before := over()
		for i := range each {
			text := fmt.Sprintf("%d/%d", round, i)
			run := map[string]any{"command": []string{"sh", "-c", "sleep 0.3; echo " + text}}
			if i%3 == 0 {
				run["session"], run["command"] = "work", []string{"sh", "-c", "echo " + text + " >> ran; sleep 0.3; echo " + text}
				inSession++
			}
			var e sandbox.Execution
			asks("POST", "/v1/executions", map[string]any{"run": run, "callback": map[string]string{"url": hears.URL}}, &e)
			said[e.ID] = text + "\n"
		}
		until(t, "some have ended, and others run", func() bool { return over() > before+round%3 })
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait() // it was killed
		server = serve()
	}
	lost, used := 0, map[sandbox.ID]bool{}
	for id, want := range said {
		var e sandbox.Execution
		asks("GET", "/v1/executions/"+string(id)+"?wait=10m", nil, &e)
		switch {
		case e.State == sandbox.ExecutionSucceeded && string(e.Result.Stdout) == want:
		case e.State == sandbox.ExecutionLost && e.Session == "":
			lost++
		default:
			t.Errorf("%s in %q: %s, %+v, %+v", id, e.Session, e.State, e.Exit, e.Error)
		}
		var begun struct{ Items []sandbox.Event }
		asks("GET", "/v1/audit?kind="+sandbox.EventExecStarted+"&label="+sandbox.ExecutionLabel+"="+string(id), nil, &begun)
		if len(begun.Items) != 1 && e.Session == "" { // in a session one that never began is announced again
			t.Errorf("%s began %d times", id, len(begun.Items))
		}
		for _, e := range begun.Items {
			used[e.Sandbox] = true
		}
	}
	var all sandbox.Execution
	asks("POST", "/v1/executions", map[string]any{"run": map[string]any{"session": "work", "command": []string{"cat", "ran"}}}, &all)
	asks("GET", "/v1/executions/"+string(all.ID)+"?wait=10m", nil, &all)
	ran := strings.Fields(string(all.Result.Stdout))
	if slices.Sort(ran); len(ran) != inSession || len(slices.Compact(ran)) != inSession {
		t.Errorf("of %d in the session these ran: %q", inSession, ran)
	}
	t.Logf("%d executions, %d kills, %d were lost", len(said), rounds, lost)
	if lost > workers*rounds {
		t.Errorf("%d are lost, and %d ran at once", lost, workers)
	}
	until(t, "each is called back", func() bool { return over() == len(said) })
	for id, deliveries := range hears.ends {
		if said[id] == "" || len(deliveries) != 1 {
			t.Errorf("%s was told under %d ids", id, len(deliveries))
		}
	}
	asks("DELETE", "/v1/sessions/work?force=true", nil, nil)
	until(t, "nothing is left", func() bool {
		asks("POST", "/v1/sweep", map[string]any{}, nil)
		for id := range used {
			if state(t, kit, string(id)) != "gone" || volumeExists(kit, string(id)) {
				return false
			}
		}
		return len(sandboxes(base)) == 0
	})
}
