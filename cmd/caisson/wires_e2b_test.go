package main

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"
)

// processE2B asks for a procedure of processes as E2B's clients do.
func processE2B(t *testing.T, address, key, id, procedure, body string) *http.Response {
	t.Helper()
	contentType := "application/json"
	if procedure == "Start" || procedure == "Connect" { // which answer with events
		contentType = "application/connect+json"
		body = string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))) + body
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/process.Process/"+procedure, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {contentType}, "Connect-Protocol-Version": {"1"}, "E2b-Sandbox-Id": {id}, "X-Api-Key": {key}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// eventE2B is the next event that is answered.
func eventE2B(t *testing.T, res *http.Response) string {
	t.Helper()
	head := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, head); err != nil {
		t.Fatal(err)
	}
	event := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(res.Body, event); err != nil {
		t.Fatal(err)
	}
	return string(event)
}

// TestE2BTags: a command is followed, written to and ended by the tag that it was
// started with.
func TestE2BTags(t *testing.T) {
	t.Parallel()
	kit, base := place(t)
	kit.Image(t, "shell")
	address, key, end := wired(t, kit, base, "--wire", "e2b")
	defer end()
	var made struct{ SandboxID string }
	if code := askWithKey(t, "POST", address+"/v2/sandboxes", map[string]any{"templateID": "shell"}, &made, key); code != 201 {
		t.Fatalf("%d", code)
	}
	defer askWithKey(t, "DELETE", address+"/sandboxes/"+made.SandboxID, nil, nil, key)
	asks := func(procedure, body string) *http.Response {
		return processE2B(t, address, key, made.SandboxID, procedure, body)
	}
	first := asks("Start", `{"process": {"cmd": "/bin/sh", "args": ["-c", "read line; echo got $line; exec sleep 600"]}, "tag": "mine", "stdin": true}`)
	defer first.Body.Close()
	begun := eventE2B(t, first)
	second := asks("Connect", `{"process": {"tag": "mine"}}`)
	defer second.Body.Close()
	if got := eventE2B(t, second); got != begun || !strings.Contains(got, `"start"`) {
		t.Errorf("it began with %s, and who connects is told %s", begun, got)
	}
	other := asks("Connect", `{"process": {"tag": "another"}}`)
	defer other.Body.Close()
	if got := eventE2B(t, other); !strings.Contains(got, `"not_found"`) {
		t.Errorf("another tag: %s", got)
	}
	for _, body := range [][2]string{{"SendInput", `"input": {"stdin": "b25lCg=="}`}, {"SendSignal", `"signal": "SIGNAL_SIGKILL"`}} {
		res := asks(body[0], `{"process": {"tag": "mine"}, `+body[1]+`}`)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", body[0], res.Status)
		}
		want := `{"event":{"data":{"stdout":"Z290IG9uZQo="}}}` // got one
		if body[0] == "SendSignal" {
			want = `{"event":{"end":{"exitCode":-1,"exited":false,"status":"signal: killed","error":"signal: killed"}}}`
		}
		for who, res := range map[string]*http.Response{"who started it": first, "who connected": second} {
			if got := eventE2B(t, res); got != want {
				t.Errorf("after %s %s is told %s", body[0], who, got)
			}
		}
	}
}
