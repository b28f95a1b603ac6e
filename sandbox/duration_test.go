package sandbox_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"10": 10 * time.Second, "0.5": 500 * time.Millisecond, "0": 0, "500ms": 500 * time.Millisecond, "1h30m": 90 * time.Minute, "-1": -time.Second,
	} {
		if got, err := sandbox.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "soon", "10 s", "NaN", "Inf", "1e300", "10x"} {
		if got, err := sandbox.ParseDuration(text); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestDurationJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "1500": 1500 * time.Millisecond, "-20": -20 * time.Millisecond, "0.25": 250 * time.Microsecond, "0.000001": 1,
		"9223372036854": 9223372036854 * time.Millisecond,
	} {
		var d sandbox.Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %s, %v", text, d, err)
		}
		if b, err := json.Marshal(d); err != nil || string(b) != text {
			t.Errorf("%s is written %s, %v", text, b, err)
		}
	}
	for _, text := range []string{`"10s"`, "true", "1e300", "9223372036855", "{}"} {
		var d sandbox.Duration
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s: %s", text, d)
		}
	}
}
