package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/client"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestMain(m *testing.M) {
	// Standard input is read until it gives something: nobody waits for that.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/caisson-dev/caisson/api/client_test.(*quiet).Read"))
}

// double stands for a service: each method hands its arguments to called, by
// its name, and returns the values of that. See double_test.go.
type double struct {
	api.Service
	called func(method string, args ...any) []any
}

// through starts a server of svc and returns a client of it.
func through(t *testing.T, svc api.Service) *client.Client {
	t.Helper()
	s, err := server.New(server.Config{Service: svc})
	if err != nil {
		t.Fatal(err)
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	c, err := client.New(client.Config{Host: ts.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// besides are arguments that do not travel as they are.
func besides(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[context.Context](), reflect.TypeFor[sandbox.Streams](), reflect.TypeFor[sandbox.Local](), reflect.TypeFor[io.Writer](), reflect.TypeFor[io.Reader]():
		return true
	}
	return false
}

// argument is a value of a type that is no zero.
func argument(ctx context.Context, t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case reflect.TypeFor[context.Context]():
		v.Set(reflect.ValueOf(ctx))
	case reflect.TypeFor[sandbox.Streams](), reflect.TypeFor[sandbox.Local]():
	case reflect.TypeFor[io.Writer]():
		v.Set(reflect.ValueOf(&bytes.Buffer{}))
	case reflect.TypeFor[io.Reader]():
		v.Set(reflect.ValueOf(strings.NewReader("read")))
	default:
		fill(v)
	}
	return v
}

// TestConformance calls every method of the service through client and server:
// the service gets what was asked, and the caller gets what it answers, errors
// with what came of the call beside them.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, face := range []reflect.Type{reflect.TypeFor[api.Service](), reflect.TypeFor[api.Files]()} {
		for m := range face.Methods() {
			if m.Name == "Files" || m.Name == "DialPort" {
				continue // the way to the others; TestDialPort
			}
			t.Run(face.Name()+"/"+m.Name, func(t *testing.T) {
				t.Parallel()
				checkMethod(t, face, m, nil)
				if m.Name != "Feed" && m.Name != "AlertNews" {
					checkMethod(t, face, m, sandbox.Errorf(sandbox.Conflict, "so it is").WithHint("do it otherwise"))
				}
			})
		}
	}
}

// checkMethod calls a method that answers values, and with fails fails.
func checkMethod(t *testing.T, face reflect.Type, m reflect.Method, fails error) {
	var got []any
	calls := 0
	values := answers(m.Type, fails)
	svc := &double{called: func(method string, args ...any) []any {
		if m.Name == "CreateSession" && method == "Session" { // what is temporary goes with the client
			return []any{sandbox.SessionView{}, nil}
		}
		if method != m.Name {
			t.Errorf("%s is called", method)
		}
		got = args
		calls++
		return values
	}}
	c := through(t, svc)
	var target reflect.Value
	if target = reflect.ValueOf(c); face == reflect.TypeFor[api.Files]() {
		f, err := c.Files(t.Context(), "a.name")
		if err != nil {
			t.Fatal(err)
		}
		target = reflect.ValueOf(f)
	}
	var in []reflect.Value
	for i := range m.Type.NumIn() {
		in = append(in, argument(t.Context(), m.Type.In(i)))
	}
	out := target.MethodByName(m.Name).Call(in)
	for i, v := range out {
		if isSeq(v.Type()) {
			out[i] = collect(v)
			values[i] = collect(reflect.ValueOf(values[i])).Interface()
		}
	}
	if calls != 1 {
		t.Fatalf("the service was called %d times: %v", calls, out[len(out)-1])
	}
	for i, arg := range in {
		if !besides(arg.Type()) {
			if d := cmp.Diff(trimmed(arg.Interface()), trimmed(got[i])); d != "" {
				t.Errorf("argument %d is another: %s", i, d)
			}
		}
	}
	for i, v := range out {
		if err, ok := v.Interface().(error); ok {
			if !errors.Is(err, sandbox.Conflict) || err.Error() != "so it is" || sandbox.HintOf(err) != "do it otherwise" {
				t.Errorf("the error is %v", err)
			}
			continue
		}
		if fails != nil && !besideError[m.Name] {
			continue
		}
		if d := cmp.Diff(form(t, values[i]), form(t, v.Interface())); d != "" {
			t.Errorf("value %d is another: %s", i, d)
		}
	}
}

// besideError has something to answer beside an error.
var besideError = map[string]bool{"Run": true, "Exec": true, "InputExec": true, "Undo": true, "Sweep": true}

// trimmed is an argument without what a page asks more for.
func trimmed(v any) any {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Struct {
		return v
	}
	c := reflect.New(r.Type()).Elem()
	c.Set(r)
	if limit := c.FieldByName("Limit"); limit.IsValid() && strings.HasSuffix(r.Type().Name(), "Filter") {
		limit.SetInt(0)
	}
	return c.Interface()
}

// form is a value in JSON, where two that are the same to callers are equal.
func form(t *testing.T, v any) string {
	if err, ok := v.(error); ok || v == nil {
		return fmt.Sprint(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func isSeq(t reflect.Type) bool { return t.Kind() == reflect.Func }

// collect reads a sequence to its end, or to its error.
func collect(seq reflect.Value) reflect.Value {
	var list []any
	if seq.Type().In(0).NumIn() == 1 {
		for v := range seq.Seq() {
			list = append(list, v.Interface())
		}
		return reflect.ValueOf(list)
	}
	for v, err := range seq.Seq2() {
		if !err.IsNil() {
			return err.Elem()
		}
		list = append(list, v.Interface())
	}
	return reflect.ValueOf(list)
}

// answers are values that a method can return.
func answers(m reflect.Type, fails error) []any {
	var list []any
	for out := range m.Outs() {
		switch {
		case out == reflect.TypeFor[error]():
			list = append(list, fails)
		case isSeq(out):
			list = append(list, sequence(out, fails))
		default:
			v := reflect.New(out).Elem()
			fill(v)
			if out == reflect.TypeFor[int64]() && m.NumIn() > 2 { // bytes of a copy: those that the double copies
				v.SetInt(4)
			}
			list = append(list, v.Interface())
		}
	}
	return list
}

// sequence yields one value, and then the error.
func sequence(t reflect.Type, fails error) any {
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		yield := args[0]
		v := reflect.New(yield.Type().In(0)).Elem()
		fill(v)
		if yield.Type().NumIn() == 1 {
			yield.Call([]reflect.Value{v})
			return nil
		}
		none := reflect.Zero(reflect.TypeFor[error]())
		if fails != nil {
			yield.Call([]reflect.Value{reflect.Zero(v.Type()), reflect.ValueOf(fails)})
			return nil
		}
		yield.Call([]reflect.Value{v, none})
		return nil
	}).Interface()
}

// fill puts something into every part of a value.
func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"x":1}`))
		return
	case reflect.TypeFor[sandbox.ID]():
		v.SetString(strings.Repeat("0a", 16))
		return
	case reflect.TypeFor[sandbox.Duration]():
		v.SetInt(int64(9 * time.Millisecond))
		return
	case reflect.TypeFor[sandbox.Level]():
		v.SetInt(int64(sandbox.High))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.String:
		v.SetString("a.x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(9)
	case reflect.Uint8:
		v.SetUint(0xff) // no UTF-8
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(0o640)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	default:
		panic("nothing has a " + v.Kind().String())
	}
}
