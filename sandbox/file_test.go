package sandbox_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/sandbox"
)

func TestFileJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sandbox.File{
		`{"path":"a.txt","data":"grüß\n"}`:                                             {Path: "a.txt", Data: []byte("grüß\n")},
		`{"path":"a.bin","mode":493,"data_base64":"/w=="}`:                             {Path: "a.bin", Mode: 0o755, Data: []byte{0xff}},
		`{"path":"big","ref":"sha256:1","size":9}`:                                     {Path: "big", Ref: "sha256:1", Size: 9},
		`{"path":"l\ufffd","link":"\ufffd","path_base64":"bP8=","link_base64":"/w=="}`: {Path: "l\xff", Link: "\xff"},
		`{"path":"d","dir":true}`:                                                      {Path: "d", Dir: true},
	} {
		var f sandbox.File
		if err := json.Unmarshal([]byte(text), &f); err != nil || !cmp.Equal(f, want) {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
		if b, err := json.Marshal(f); err != nil || string(b) != text {
			t.Errorf("%s is written %s, %v", text, b, err)
		}
	}
}
