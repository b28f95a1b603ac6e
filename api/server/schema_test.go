package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// TestSchemas holds what is answered to its description: values with nothing in
// them, and with something in every field, are as their schemas say.
func TestSchemas(t *testing.T) {
	t.Parallel()
	r := newRegistry()
	for _, zero := range []any{
		wire.Problem{}, wire.Page[sandbox.SessionView]{}, wire.Page[sandbox.ExecRecord]{}, wire.Page[api.Process]{}, wire.Page[sandbox.ChangeRecord]{}, wire.Page[sandbox.FileDiff]{},
		wire.Page[sandbox.FileInfo]{}, wire.Page[sandbox.Approval]{}, wire.Page[api.LanguageInfo]{}, wire.Page[api.ImageResult]{}, wire.Page[sandbox.PrunedImage]{}, wire.Page[sandbox.ImagePin]{}, wire.Page[sandbox.ImageRoot]{},
		wire.Page[sandbox.ImageCheck]{}, wire.Page[sandbox.Event]{}, wire.Page[sandbox.Orphan]{}, wire.Page[sandbox.StateSize]{}, wire.Page[sandbox.PoolShelf]{}, wire.Page[api.Check]{}, wire.Page[sandbox.Reading]{},
		wire.Page[sandbox.Alert]{}, wire.Page[sandbox.Execution]{}, wire.Page[sandbox.DeadLetter]{}, wire.Page[sandbox.Token]{},
		sandbox.Result{}, sandbox.Session{}, sandbox.SessionStats{}, sandbox.Snapshot{}, api.Forked{}, api.Undone{}, sandbox.Decision{Level: sandbox.Safe}, sandbox.Image{}, sandbox.AuditReport{},
		sandbox.Pruned{}, sandbox.Moved{}, sandbox.ChangeNews{}, sandbox.FileEvent{}, sandbox.AlertNews{Alert: sandbox.Alert{Severity: sandbox.Low}}, sandbox.NewToken{}, wire.Attached{},
	} {
		typ := reflect.TypeOf(zero)
		full := reflect.New(typ).Elem()
		fill(full)
		for name, value := range map[string]any{"empty": zero, "full": full.Interface()} {
			b, err := json.Marshal(value)
			if err != nil {
				t.Errorf("%s %s: %v", name, typ, err)
				continue
			}
			var parsed any
			if err := json.Unmarshal(b, &parsed); err != nil {
				t.Fatal(err)
			}
			var result huma.ValidateResult
			huma.Validate(r, r.Schema(typ, true, ""), huma.NewPathBuffer([]byte{}, 0), huma.ModeReadFromServer, parsed, &result)
			for _, err := range result.Errors {
				t.Errorf("%s %s: %v in %s", name, typ, err, b)
			}
		}
	}
}

// TestOperations: every method of the service has a call of its name.
func TestOperations(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Service: struct{ api.Service }{}})
	if err != nil {
		t.Fatal(err)
	}
	for m := range reflect.TypeFor[api.Service]().Methods() {
		name := strings.ToLower(m.Name[:1]) + m.Name[1:]
		if !strings.Contains(string(s.openAPI), `"operationId":"`+name+`"`) {
			t.Errorf("nothing calls %s", m.Name)
		}
	}
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
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(9)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(0xff)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	default:
		panic("no answer has a " + v.Kind().String())
	}
}
