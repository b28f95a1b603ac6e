package e2b

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// decodeJSON is [json.Unmarshal], with errors in the words of JSON.
func decodeJSON(b []byte, into any) error { return worded(json.Unmarshal(b, into)) }

// worded says which field is of another type than it takes, and names no type of Go's.
func worded(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	is, value, _ := strings.Cut(wrong.Value, " ")
	return fmt.Errorf("%s takes %s, not %s", cmp.Or(wrong.Field, "it"), jsonType(wrong.Type), cmp.Or(value, cmp.Or(called[is], is)))
}

// called are the types of JSON as errors of [json.Unmarshal] name them.
var called = map[string]string{"string": "a string", "number": "a number", "bool": "a boolean", "array": "an array", "object": "an object"}

// jsonType is what JSON calls values of a type.
func jsonType(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return jsonType(t.Elem())
	case k == reflect.Struct || k == reflect.Map:
		return called["object"]
	case k == reflect.Slice || k == reflect.Array:
		return called["array"]
	case k == reflect.Bool:
		return called["bool"]
	case k == reflect.Float32 || k == reflect.Float64:
		return called["number"]
	case t.ConvertibleTo(reflect.TypeFor[int64]()) && k != reflect.String:
		return "a whole number"
	}
	return called["string"]
}
