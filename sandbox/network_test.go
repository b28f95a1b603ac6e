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
		`{}`: {}, `{"mode":"bridge"}`: {Mode: "bridge"}, `{"mode":"allow","allow":["a.test","b.test"],"deny":["c.b.test"]}`: {Mode: "allow", Allow: []string{"a.test", "b.test"}, Deny: []string{"c.b.test"}},
	} {
		var n sandbox.Network
		if err := json.Unmarshal([]byte(text), &n); err != nil || !cmp.Equal(n, want) {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
		if b, err := json.Marshal(n); err != nil || string(b) != text {
			t.Errorf("%s is written %s, %v", text, b, err)
		}
	}
	n := sandbox.Network{Allow: []string{"a.test"}}
	if err := n.Set("allow"); err != nil || n.Check() != nil {
		t.Errorf("the mode after its hosts: %+v, %v", n, n.Check())
	}
	if err := json.Unmarshal([]byte(`"bridge"`), &n); err != nil || n.Mode != sandbox.NetworkBridge {
		t.Errorf("a word: %+v, %v", n, err)
	}
	for _, bad := range []sandbox.Network{{Mode: "host"}, {Mode: "container:x"}, {Mode: "bridge", Allow: []string{"a.test"}}, {Deny: []string{"a.test"}}, {Mode: "allow"}, {Mode: "allow", Allow: []string{""}}, {Mode: "allow", Allow: []string{"*"}}} {
		if err := bad.Check(); !errors.Is(err, sandbox.Invalid) || sandbox.HintOf(err) == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if got := (sandbox.Network{Mode: "allow", Allow: []string{"a", "b"}, Deny: []string{"c"}}).String(); got != "allow, only a b, not c" {
		t.Error(got)
	}
}
