package sandbox_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sandbox.Network{
		`{}`: {}, `{"mode":"bridge"}`: {Mode: "bridge"}, `{"mode":"mine","allow":["a.test","b.test"]}`: {Mode: "mine", Allow: []string{"a.test", "b.test"}},
	} {
		var n sandbox.Network
		if err := json.Unmarshal([]byte(text), &n); err != nil || !cmp.Equal(n, want) {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
		if b, err := json.Marshal(n); err != nil || string(b) != text {
			t.Errorf("%s is written %s, %v", text, b, err)
		}
	}
	var n sandbox.Network
	if err := json.Unmarshal([]byte(`"bridge"`), &n); err != nil || n.Mode != sandbox.NetworkBridge {
		t.Errorf("a word: %+v, %v", n, err)
	}
	for _, bad := range []sandbox.Network{{Mode: "host"}, {Mode: "container:x"}, {Mode: "bridge", Allow: []string{""}}} {
		if err := bad.Check(); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got := (sandbox.Network{Mode: "bridge", Allow: []string{"a", "b"}}).String(); got != "bridge, only a b" {
		t.Error(got)
	}
}
