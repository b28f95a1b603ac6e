package api_test

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// requests are the types that a caller of the service fills in, with a value of
// each that has every field set.
var requests = map[reflect.Type]any{
	reflect.TypeFor[sandbox.Run]():              filled[sandbox.Run](),
	reflect.TypeFor[sandbox.ShellOptions]():     filled[sandbox.ShellOptions](),
	reflect.TypeFor[sandbox.ShellRun]():         filled[sandbox.ShellRun](),
	reflect.TypeFor[sandbox.File]():             filled[sandbox.File](),
	reflect.TypeFor[sandbox.AttachOptions]():    filled[sandbox.AttachOptions](),
	reflect.TypeFor[sandbox.SessionFilter]():    filled[sandbox.SessionFilter](),
	reflect.TypeFor[sandbox.ExecFilter]():       filled[sandbox.ExecFilter](),
	reflect.TypeFor[sandbox.EventFilter]():      filled[sandbox.EventFilter](),
	reflect.TypeFor[sandbox.AlertFilter]():      filled[sandbox.AlertFilter](),
	reflect.TypeFor[sandbox.ReadingFilter]():    filled[sandbox.ReadingFilter](),
	reflect.TypeFor[sandbox.Retention]():        filled[sandbox.Retention](),
	reflect.TypeFor[sandbox.ApprovalFilter]():   filled[sandbox.ApprovalFilter](),
	reflect.TypeFor[sandbox.ApprovalAnswer]():   filled[sandbox.ApprovalAnswer](),
	reflect.TypeFor[sandbox.FunctionOptions]():  filled[sandbox.FunctionOptions](),
	reflect.TypeFor[sandbox.FunctionFilter]():   filled[sandbox.FunctionFilter](),
	reflect.TypeFor[sandbox.Invocation]():       filled[sandbox.Invocation](),
	reflect.TypeFor[sandbox.TokenOptions]():     filled[sandbox.TokenOptions](),
	reflect.TypeFor[sandbox.ExecutionOptions](): filled[sandbox.ExecutionOptions](),
	reflect.TypeFor[sandbox.ExecutionFilter]():  filled[sandbox.ExecutionFilter](),
	reflect.TypeFor[sandbox.DeadLetterFilter](): filled[sandbox.DeadLetterFilter](),
	reflect.TypeFor[api.SessionOptions]():       filled[api.SessionOptions](),
	reflect.TypeFor[api.RenewOptions]():         filled[api.RenewOptions](),
	reflect.TypeFor[sandbox.NetworkChange]():    filled[sandbox.NetworkChange](),
	reflect.TypeFor[api.ForkOptions]():          filled[api.ForkOptions](),
	reflect.TypeFor[api.ChangesOptions]():       filled[api.ChangesOptions](),
	reflect.TypeFor[api.UndoOptions]():          filled[api.UndoOptions](),
	reflect.TypeFor[api.SweepOptions]():         filled[api.SweepOptions](),
	reflect.TypeFor[sandbox.MakeImageOptions](): filled[sandbox.MakeImageOptions](),
	reflect.TypeFor[sandbox.PullImageOptions](): filled[sandbox.PullImageOptions](),
}

// beside are what lies beside a request, since it cannot travel.
var beside = []reflect.Type{
	reflect.TypeFor[context.Context](), reflect.TypeFor[io.Reader](), reflect.TypeFor[io.Writer](), reflect.TypeFor[sandbox.Streams](),
	reflect.TypeFor[sandbox.Local](),
}

// TestRequestsTravel walks all that can be asked of the service: each is whole as
// JSON.
func TestRequestsTravel(t *testing.T) {
	t.Parallel()
	met := map[reflect.Type]bool{}
	for _, role := range []reflect.Type{reflect.TypeFor[api.Service](), reflect.TypeFor[api.Files]()} {
		for i := range role.NumMethod() {
			m := role.Method(i)
			for j := range m.Type.NumIn() {
				in := m.Type.In(j)
				if slices.Contains(beside, in) {
					continue
				}
				if in.Kind() == reflect.Slice {
					in = in.Elem()
				}
				if in.Kind() != reflect.Struct {
					if why := travels(in); why != "" {
						t.Errorf("%s: %s", m.Name, why)
					}
					continue
				}
				met[in] = true
				if requests[in] == nil {
					t.Errorf("%s asks for a %s, which is not in the list of requests", m.Name, in)
				}
			}
		}
	}
	for typ, value := range requests {
		if !met[typ] {
			t.Errorf("nothing asks for a %s", typ)
		}
		if why := travels(typ); why != "" {
			t.Errorf("%s does not travel: %s", typ, why)
		}
		checkTwice(t, typ, value)
	}
}

// TestAnswersTravel: what the service answers comes back from JSON as it was, or
// where its form has less than its maker knows, as that form.
func TestAnswersTravel(t *testing.T) {
	t.Parallel()
	diff := filled[sandbox.FileDiff]()
	diff.Op, diff.Before, diff.After = sandbox.OpModified, sandbox.FileState{}, sandbox.FileState{}
	news := filled[sandbox.ChangeNews]()
	news.FileChange = diff.FileChange
	for _, value := range []any{
		filled[sandbox.Result](), diff, sandbox.FileEvent{Path: "a\xff", Op: "write"}, filled[sandbox.Attached](), filled[sandbox.Session](), anExecution(), filled[sandbox.DeadLetter](), filled[sandbox.SessionStats](), filled[sandbox.Snapshot](), filled[sandbox.StateSize](), filled[sandbox.PoolShelf](), filled[sandbox.PrunedImage](),
		filled[sandbox.ExecRecord](), filled[sandbox.Event](), filled[sandbox.Approval](), filled[sandbox.Alert](), filled[sandbox.Reading](),
		filled[sandbox.Function](), filled[sandbox.Invoked](), filled[sandbox.Token](), filled[sandbox.NewToken](), filled[sandbox.AuditReport](), filled[sandbox.Pruned](), filled[sandbox.Moved](), filled[sandbox.FileInfo](), filled[sandbox.Image](), filled[sandbox.ImageRoot](), filled[sandbox.Decision](),
		filled[api.Process](), filled[sandbox.Orphan](), filled[api.Check](), filled[api.RuntimeInfo](), filled[api.LanguageInfo](), filled[sandbox.ImagePin](), filled[sandbox.ImageCheck](), filled[api.ImageResult](),
		filled[sandbox.AlertNews](), news,
	} {
		checkTwice(t, reflect.TypeOf(value), value)
	}
}

// anExecution has all but what a Result's form leaves out.
func anExecution() sandbox.Execution {
	e := filled[sandbox.Execution]()
	e.Result = nil
	return e
}

// checkTwice takes a value through JSON and back.
func checkTwice(t *testing.T, typ reflect.Type, value any) {
	t.Helper()
	first, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	read := reflect.New(typ)
	if err := json.Unmarshal(first, read.Interface()); err != nil {
		t.Errorf("%s: %v", typ, err)
	}
	if typ != reflect.TypeFor[sandbox.Result]() { // its form has less than a ledger knows of a change
		if d := cmp.Diff(value, read.Elem().Interface()); d != "" {
			t.Errorf("%s comes back as another: %s", typ, d)
		}
	}
	second, err := json.Marshal(read.Interface())
	if err != nil || string(first) != string(second) {
		t.Errorf("%s: %v\n%s\n%s", typ, err, first, second)
	}
}

// travels says why a type is not whole as JSON; "" is that it is.
func travels(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return t.String()
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return travels(t.Elem())
	case reflect.Map:
		return travels(t.Key()) + travels(t.Elem())
	case reflect.Struct:
	default:
		if t == reflect.TypeFor[time.Duration]() {
			return "a time.Duration is nanoseconds in JSON"
		}
		return ""
	}
	if t == reflect.TypeFor[time.Time]() {
		return ""
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
			return f.Name + " is not exported"
		case name == "-" || name == "" && !f.Anonymous:
			return f.Name + " has no name in JSON"
		}
		if why := travels(f.Type); why != "" {
			return f.Name + ": " + why
		}
	}
	return ""
}

// filled is a value with something in every field.
func filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"x":1}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(3_000_000) // also a whole number of milliseconds
		if v.Type() == reflect.TypeFor[sandbox.Level]() {
			v.SetInt(int64(sandbox.High))
		}
	case reflect.Uint8:
		v.SetUint(0xff) // no UTF-8
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(420)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	default:
		panic("no request has a " + v.Kind().String())
	}
}
