package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestWireQuotas holds owners to their quotas whichever wire they come by: each tells
// them so in its own words.
func TestWireQuotas(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "shell")
	config := base + "/caisson.yaml"
	const quotas = "version: 1\nquotas:\n  wait: 0s\n  owners:\n    ann: {sandboxes: 1}\n    bob: {execs: 1}\n    eve: {requests: 0.001}\n"
	if err := os.WriteFile(config, []byte(quotas), 0o600); err != nil {
		t.Fatal(err)
	}
	address, ann, end := wired(t, kit, base, "--config", config, "--wire", "e2b", "--wire", "fusion", "--wire", "swerex")
	defer end()
	token := func(owner string) string {
		all := said(t, kit, base, "token", "create", "--owner", owner)
		return all[strings.LastIndex(all, "\n")+1:]
	}
	bob, eve := token("bob"), token("eve")
	create := func(who string) (code int, got map[string]any) {
		code = askWithKey(t, "POST", address+"/v2/sandboxes", map[string]any{"templateID": "shell"}, &got, who)
		return code, got
	}
	kill := func(who string, made map[string]any) {
		if code := askWithKey(t, "DELETE", address+"/sandboxes/"+made["sandboxID"].(string), nil, nil, who); code != 204 {
			t.Errorf("kill %v: %d", made, code)
		}
	}
	says := func(what string, got any, text string) {
		t.Helper()
		if s, _ := got.(string); !strings.Contains(s, text) {
			t.Errorf("%s: %v has no %q", what, got, text)
		}
	}
	// others are the two wires besides E2B's, where there is no room.
	others := func(who, text string) {
		t.Helper()
		var got map[string]any
		if code := ask(t, address, "POST", "/run_code", who, map[string]string{"code": "true", "language": "bash"}, &got); code != 200 || got["status"] != "SandboxError" {
			t.Errorf("/run_code: %d %v", code, got)
		}
		says("/run_code", got["message"], text)
		got = nil
		if code := askWithKey(t, "POST", address+"/execute", map[string]any{"command": []string{"true"}}, &got, who); code != 511 {
			t.Errorf("/execute: %d %v", code, got)
		}
		raised, _ := got["swerexception"].(map[string]any)
		says("/execute", raised["message"], text)
		if extra, _ := raised["extra_info"].(map[string]any); extra["kind"] != "exhausted" {
			t.Errorf("/execute: %v", raised)
		}
	}
	code, made := create(ann)
	if code != 201 {
		t.Fatalf("a first sandbox: %d %v", code, made)
	}
	defer kill(ann, made)
	code, got := create(ann)
	if code != 429 || got["code"] != 429.0 {
		t.Errorf("a second sandbox: %d %v", code, got)
	}
	says("a second sandbox", got["message"], "the quota of 1 sandboxes is used up")
	others(ann, "the quota of 1 sandboxes is used up")

	if code, made = create(bob); code != 201 {
		t.Fatalf("a sandbox: %d %v", code, made)
	}
	defer kill(bob, made)
	id, _ := made["sandboxID"].(string)
	if code := ask(t, address, "POST", "/v1/sessions/"+id+"/execs/background", bob, map[string]any{"command": []string{"sleep", "600"}}, nil); code != 201 {
		t.Fatalf("an exec: %d", code)
	}
	if answer := startInE2B(t, address, bob, id); !strings.Contains(answer, "resource_exhausted") || !strings.Contains(answer, "the quota of 1 execs at once is used up") {
		t.Errorf("a second exec: %q", answer)
	}
	others(bob, "the quota of 1 execs at once is used up")

	for i, path := range []string{"/v1/ping", "/v1/ping", "/v2/sandboxes", "/is_alive"} {
		var answer any
		code := askWithKey(t, "GET", address+path, nil, &answer, eve)
		if i == 0 {
			if code != 200 {
				t.Errorf("a first request: %d %v", code, answer)
			}
			continue
		}
		body, _ := answer.(map[string]any)
		word := map[string]string{"/v2/sandboxes": "message"}[path]
		if word == "" {
			word = "detail"
		}
		if code != 429 {
			t.Errorf("%s: %d %v", path, code, answer)
		}
		says(path, body[word], "requests in a second")
	}
}

// startInE2B starts a command as E2B's clients do, and returns all that is answered.
func startInE2B(t *testing.T, address, key, id string) string {
	t.Helper()
	res := processE2B(t, address, key, id, "Start", `{"process": {"cmd": "/bin/bash", "args": ["-l", "-c", "true"]}}`)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
