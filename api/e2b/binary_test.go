package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// spoken are messages of every procedure that is served: what it takes, and then what it
// returns, each field of which is set in one of them.
func spoken() map[string][2][]any {
	pid, text, yes := uint32(7), "text", true
	config := processConfig{Cmd: "sh", Args: []string{"-c", "true"}, Envs: map[string]string{"A": "b"}, Cwd: &text}
	size := &pty{Size: &ptySize{Cols: 80, Rows: 24}}
	by := &selector{PID: &pid}
	file := entry{
		Name: "f", Type: "FILE_TYPE_FILE", Path: "/home/user/f", Size: 1 << 60, Mode: 0o644, Permissions: "rw-r--r--", Owner: "user", Group: "user",
		ModifiedTime: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC), SymlinkTarget: &text, Metadata: map[string]string{"k": "v"},
	}
	one := []any{&entryAnswer{file}}
	events := []any{
		&processEvent{event{Start: &started{7}}}, &processEvent{event{Data: &output{Stdout: []byte{0, 255}}}}, &processEvent{event{Data: &output{Stderr: []byte("e")}}},
		&processEvent{event{Data: &output{PTY: []byte("p")}}}, &processEvent{event{End: &ended{ExitCode: -1, Exited: true, Status: "exit", Error: &text}}}, &processEvent{event{KeepAlive: &empty{}}},
	}
	return map[string][2][]any{
		"process.Process/List":    {{&empty{}}, {&processList{Processes: []processInfo{{Config: config, PID: 7, Tag: &text}}}}},
		"process.Process/Start":   {{&startRequest{Process: &config, PTY: size, Tag: &text, Stdin: &yes}}, events},
		"process.Process/Connect": {{&selectRequest{by}, &selectRequest{&selector{Tag: &text}}}, events},
		"process.Process/SendInput": {{
			&inputRequest{by, &input{Stdin: []byte("in")}}, &inputRequest{&selector{Tag: &text}, &input{PTY: []byte("in")}},
		}, {&empty{}}},
		"process.Process/CloseStdin":     {{&selectRequest{by}, &selectRequest{&selector{Tag: &text}}}, {&empty{}}},
		"process.Process/SendSignal":     {{&signalRequest{by, 9}, &signalRequest{&selector{Tag: &text}, 15}}, {&empty{}}},
		"process.Process/Update":         {{&updateRequest{by, size}, &updateRequest{&selector{Tag: &text}, size}}, {&empty{}}},
		"filesystem.Filesystem/Stat":     {{&pathRequest{"p"}}, one},
		"filesystem.Filesystem/MakeDir":  {{&pathRequest{"p"}}, one},
		"filesystem.Filesystem/Remove":   {{&pathRequest{"p"}}, {&empty{}}},
		"filesystem.Filesystem/Move":     {{&moveRequest{"a", "b"}}, one},
		"filesystem.Filesystem/ListDir":  {{&listRequest{"p", 3}}, {&entriesAnswer{[]entry{file}}}},
		"filesystem.Filesystem/WatchDir": {{&watchRequest{"p", true, true}}, {&watchEvent{Start: &empty{}}, &watchEvent{Filesystem: &fileEvent{"f", "EVENT_TYPE_CREATE", &file}}, &watchEvent{KeepAlive: &empty{}}}},
	}
}

// TestShape: the structs have the fields that the files below protos say, of all that is
// served, and pass through the binary form unchanged.
func TestShape(t *testing.T) {
	t.Parallel()
	all := spoken()
	var declared []string
	shapes().RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			for j := range f.Services().Get(i).Methods().Len() {
				m := f.Services().Get(i).Methods().Get(j)
				declared = append(declared, string(m.Parent().FullName())+"/"+string(m.Name()))
			}
		}
		return true
	})
	slices.Sort(declared)
	if d := cmp.Diff(slices.Sorted(maps.Keys(all)), declared); d != "" {
		t.Errorf("procedures: %s", d)
	}
	for name, messages := range all {
		m, err := protoBinary{name}.method()
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range []protoreflect.MessageDescriptor{m.Input(), m.Output()} {
			set := map[string]bool{}
			for _, v := range messages[i] {
				b, err := toBinary(d, v)
				if err != nil {
					t.Fatalf("%s: %+v: %v", name, v, err)
				}
				back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
				if err := fromBinary(d, b, back); err != nil {
					t.Fatalf("%s: %+v: %v", name, v, err)
				}
				if diff := cmp.Diff(inJSON(t, v), inJSON(t, back)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
				read := dynamicpb.NewMessage(d)
				if err := proto.Unmarshal(b, read); err != nil {
					t.Fatal(err)
				}
				note(set, read)
			}
			missing(t, name, set, d)
		}
	}
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// note notes which fields of a message are set.
func note(set map[string]bool, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		set[string(f.FullName())] = true
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				note(set, v.List().Get(i).Message())
			}
		default:
			note(set, v.Message())
		}
		return true
	})
}

// missing finds the fields that no message had set.
func missing(t *testing.T, name string, set map[string]bool, d protoreflect.MessageDescriptor) {
	t.Helper()
	if d.FullName() == "google.protobuf.Timestamp" {
		return
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if !set[string(f.FullName())] {
			t.Errorf("%s: no struct has %s", name, f.FullName())
		}
		if f.Message() != nil && !f.IsMap() {
			missing(t, name, set, f.Message())
		}
	}
}

// listing is a double in whose sandboxes one command runs.
type listing struct{ double }

const sleeper = sandbox.ID("sleeper")

func (*listing) ListExecs(context.Context, sandbox.ExecFilter) ([]sandbox.ExecRecord, error) {
	return []sandbox.ExecRecord{{ID: sleeper, PID: 5, Background: true, Argv: []string{"sleep", "9"}}}, nil
}

func (*listing) Processes(context.Context, string) ([]api.Process, error) {
	return []api.Process{{ID: sleeper, Running: true}}, nil
}

// TestBinary has a client of Connect's binary form ask, and be refused, and shows a
// client of gRPC its error.
func TestBinary(t *testing.T) {
	t.Parallel()
	box := view("", "i1", 0, time.Hour, nil)
	d := &listing{double{tokens: []sandbox.Token{{ID: "t"}}, views: []sandbox.SessionView{box}}}
	s := server(t, &d.double)
	s.svc = d
	ask := func(form, path string, body []byte) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set(sandboxHeader, "i1")
		r.Header.Set(accessHeader, s.pass("i1", localToken))
		r.Header.Set("Content-Type", form)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	m, err := protoBinary{"process.Process/List"}.method()
	if err != nil {
		t.Fatal(err)
	}
	w := ask("application/proto", "/process.Process/List", nil)
	got := dynamicpb.NewMessage(m.Output())
	if err := proto.Unmarshal(w.Body.Bytes(), got); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/proto" {
		t.Errorf("%d, %v, %q, %v", w.Code, w.Header(), w.Body, err)
	}
	if text, err := protojson.Marshal(got); err != nil || !strings.Contains(string(text), `"cmd":"sleep"`) {
		t.Errorf("%s, %v", text, err)
	}
	nobody, err := toBinary(mustInput(t, "process.Process/SendSignal"), &signalRequest{&selector{PID: new(uint32)}, 9})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask("application/proto", "/process.Process/SendSignal", nobody); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"not_found"`) {
		t.Errorf("%d, %q", w.Code, w.Body)
	}
	if w := ask("application/grpc-web+proto", "/process.Process/SendSignal", append([]byte{0, 0, 0, 0, byte(len(nobody))}, nobody...)); !strings.Contains(w.Body.String()+inJSON(t, w.Header()), "no such process") {
		t.Errorf("%d, %v, %q", w.Code, w.Header(), w.Body)
	}
	if w := ask("application/proto", "/process.Process/SendSignal", []byte("\x0a\xff")); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "invalid_argument") {
		t.Errorf("what is no message: %d, %q", w.Code, w.Body)
	}
}

func mustInput(t *testing.T, procedure string) protoreflect.MessageDescriptor {
	t.Helper()
	m, err := protoBinary{procedure}.method()
	if err != nil {
		t.Fatal(err)
	}
	return m.Input()
}
