package telemetry

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// LogConfig says what is logged. Its zero value is text about what needs
// somebody's attention.
type LogConfig struct {
	Format string // text or json; "" is text
	Level  string // debug, info, warn or error; "" is warn
	Out    io.Writer
}

// NewLog makes a log. Errors: Invalid.
func NewLog(c LogConfig) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.LevelWarn}
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	if c.Level != "" {
		level, ok := levels[strings.ToLower(c.Level)]
		if !ok {
			return nil, sandbox.Errorf(sandbox.Invalid, "%q is no level of a log", c.Level).WithHint("levels are debug, info, warn and error")
		}
		opts.Level = level
	}
	switch c.Format {
	case "", "text":
		return slog.New(slog.NewTextHandler(c.Out, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.Out, opts)), nil
	}
	return nil, sandbox.Errorf(sandbox.Invalid, "%q is no format of a log", c.Format).WithHint("formats are text and json")
}

// told is what a line says of an event's data: nothing that somebody else wrote.
type told struct {
	Language string   `json:"language"`
	Verdict  string   `json:"verdict"`
	Level    string   `json:"level"`
	State    string   `json:"state"`
	Reason   string   `json:"exit_reason"`
	Code     *int     `json:"exit_code"`
	Duration *int64   `json:"duration_ms"`
	Judging  *float64 `json:"policy_ms"`
	Start    *float64 `json:"start_ms"`
}

// Events logs events of the audit as they are written down, a line each, and
// says who and what by their ids. Alerts are left to their monitor, which tells
// of them by their severity. nil where the log is not to be that talkative.
func Events(log *slog.Logger) func([]sandbox.Event) {
	ctx := context.Background()
	if !log.Enabled(ctx, slog.LevelInfo) {
		return nil
	}
	return func(events []sandbox.Event) {
		for _, e := range events {
			if e.Kind != sandbox.EventAlertFired && e.Kind != sandbox.EventAlertResolved {
				log.LogAttrs(ctx, slog.LevelInfo, e.Kind, attrs(e)...)
			}
		}
	}
}

func attrs(e sandbox.Event) []slog.Attr {
	var d told
	_ = json.Unmarshal(e.Data, &d) // what is not as it is for execs has nothing to add
	var list []slog.Attr
	for _, a := range []slog.Attr{
		slog.String("session", e.Session), ID("sandbox", e.Sandbox), ID("exec", e.Exec),
		slog.String("language", d.Language), slog.String("verdict", d.Verdict), slog.String("level", d.Level),
		slog.String("state", d.State), slog.String("exit_reason", d.Reason),
	} {
		if a.Value.String() != "" {
			list = append(list, a)
		}
	}
	if d.Code != nil {
		list = append(list, slog.Int("exit_code", *d.Code))
	}
	if d.Duration != nil {
		list = append(list, slog.Int64("duration_ms", *d.Duration))
	}
	if d.Judging != nil {
		list = append(list, slog.Float64("policy_ms", *d.Judging))
	}
	if d.Start != nil {
		list = append(list, slog.Float64("start_ms", *d.Start))
	}
	return list
}
