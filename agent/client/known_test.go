package client

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/agent/wire"
	"github.com/caisson-dev/caisson/internal/known"
	"github.com/caisson-dev/caisson/sdk/python"
)

// A text that the agent brings is not sent to it, and is to one that does not say so.
func TestKnownIsNotSent(t *testing.T) {
	t.Parallel()
	cmd := Command{Stage: []StageFile{{"main.py", []byte(python.Inside)}, {"x.py", []byte(python.Values + "more")}, {"y.py", []byte("mine")}}}
	for name, tt := range map[string]struct {
		has  []string
		want []string
	}{
		"all":   {known.Digests(), []string{"", "more", "mine"}},
		"none":  {nil, []string{python.Inside, python.Values + "more", "mine"}},
		"other": {[]string{"sha256:0"}, []string{python.Inside, python.Values + "more", "mine"}},
	} {
		c := &Client{welcome: wire.Welcome{Known: tt.has}}
		var sent, whole []string
		for _, f := range c.execRequest(cmd).Stage {
			sent = append(sent, string(f.Data))
			whole = append(whole, string(known.Text(f.Known))+string(f.Data))
		}
		if !slices.Equal(sent, tt.want) {
			t.Errorf("%s: %d, %d and %d bytes are sent", name, len(sent[0]), len(sent[1]), len(sent[2]))
		}
		for i, f := range cmd.Stage {
			if whole[i] != string(f.Data) {
				t.Errorf("%s: %s is another", name, f.Name)
			}
		}
	}
}
