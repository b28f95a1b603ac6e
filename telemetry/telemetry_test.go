package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// TestLog checks formats and levels, and that an event's line has its ids and
// none of its words.
func TestLog(t *testing.T) {
	t.Parallel()
	event := sandbox.Event{
		Kind: sandbox.EventExecEnded, Session: "s", Sandbox: "b", Exec: "e",
		Data: json.RawMessage(`{"exit_reason":"exited","exit_code":0,"duration_ms":7,"cause":"s3cret","command":["s3cret"]}`),
	}
	for _, tt := range []struct{ format, level, want string }{
		{"", "", ""}, {"json", "warn", ""},
		{"text", "INFO", "level=INFO msg=exec.ended session=s sandbox=b exec=e exit_reason=exited exit_code=0 duration_ms=7\n"},
		{"json", "debug", `"level":"INFO","msg":"exec.ended","session":"s","sandbox":"b","exec":"e","exit_reason":"exited","exit_code":0,"duration_ms":7}` + "\n"},
	} {
		var out bytes.Buffer
		log, err := telemetry.NewLog(telemetry.LogConfig{Format: tt.format, Level: tt.level, Out: &out})
		if err != nil {
			t.Fatal(err)
		}
		if tell := telemetry.Events(log); tell != nil {
			tell([]sandbox.Event{event, {Kind: sandbox.EventAlertFired}})
		}
		if got := out.String(); !strings.HasSuffix(got, tt.want) || tt.want == "" && got != "" || strings.Count(got, "\n") > 1 || strings.Contains(got, "s3cret") {
			t.Errorf("%s %s: %q", tt.format, tt.level, got)
		}
	}
	for _, c := range []telemetry.LogConfig{{Format: "xml"}, {Level: "loud"}} {
		if _, err := telemetry.NewLog(c); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What is not traced costs nothing.
func TestUntraced(t *testing.T) { // not beside others: it counts allocations
	ctx := context.Background()
	in, done := telemetry.Begin(ctx, nil, "run")
	done(errors.New("s3cret"))
	if in != ctx {
		t.Error("it has a span")
	}
	if n := testing.AllocsPerRun(100, func() {
		in, done := telemetry.Start(ctx, "gate")
		telemetry.Note(in)
		done(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
