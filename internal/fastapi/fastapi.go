// Package fastapi says what is wrong with a request in the form of servers that are
// written with FastAPI, whose clients read it: a 422, and a list of faults with their
// places. It is for wires of such products.
package fastapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/sandbox"
)

// Fault is one thing that is wrong with a request.
type Fault struct {
	Type string   `json:"type"`
	Loc  []string `json:"loc"`
	Msg  string   `json:"msg"`
}

// At is a fault of a field of the body, by the names that lead to it.
func At(kind, msg string, loc ...string) Fault {
	return Fault{Type: kind, Loc: append([]string{"body"}, loc...), Msg: msg}
}

// Read reads a body of at most so many bytes. Where it cannot, it has answered, and
// ok is false.
func Read(w http.ResponseWriter, r *http.Request, most sandbox.Bytes) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(most)))
	if err == nil {
		return body, true
	}
	status := http.StatusBadRequest
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status = http.StatusRequestEntityTooLarge
	}
	Refuse(w, status, err)
	return nil, false
}

// Decode reads JSON into a value; fields that it does not have are passed over. It
// returns what is wrong with it.
func Decode(body []byte, into any) []Fault {
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		loc := slices.DeleteFunc(strings.Split(wrong.Field, "."), func(s string) bool { return s == "" })
		return []Fault{At("type_error", fmt.Sprintf("Input should be %s, and is %s", kindName(wrong.Type), wrong.Value), loc...)}
	}
	return []Fault{At("json_invalid", "JSON decode error: "+err.Error())}
}

// kindName is what JSON calls values of a type.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Pointer:
		return kindName(t.Elem())
	default:
		return t.String()
	}
}

// Write answers with JSON.
func Write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked may be gone
}

// Reject answers a request that has faults.
func Reject(w http.ResponseWriter, faults []Fault) {
	slices.SortFunc(faults, func(a, b Fault) int { return slices.Compare(a.Loc, b.Loc) })
	Write(w, http.StatusUnprocessableEntity, map[string][]Fault{"detail": faults})
}

// Refuse answers with an error.
func Refuse(w http.ResponseWriter, status int, err error) {
	Write(w, status, map[string]string{"detail": Explain(err)})
}

// Explain is an error with what to do about it.
func Explain(err error) string {
	if hint := sandbox.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}
