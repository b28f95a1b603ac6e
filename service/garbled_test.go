package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/sandbox"
)

// schema is as much of a JSON schema as tells the fields of a body.
type schema struct {
	Ref        string            `json:"$ref"`
	Properties map[string]schema `json:"properties"`
}

// fields are the names of the fields that each route's body may have.
func (a alices) fields(t *testing.T) map[string][]string {
	t.Helper()
	_, text := a.send(t.Context(), t, "bob", http.MethodGet, "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema schema `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	fields := map[string][]string{}
	for path, calls := range doc.Paths {
		for method, call := range calls {
			body, is := call.RequestBody.Content["application/json"]
			if !is {
				continue
			}
			if name, is := strings.CutPrefix(body.Schema.Ref, "#/components/schemas/"); is {
				body.Schema = doc.Components.Schemas[name]
			}
			fields[strings.ToUpper(method)+" "+path] = slices.Sorted(maps.Keys(body.Schema.Properties))
		}
	}
	if len(fields) < 25 {
		t.Fatalf("%d routes take a body", len(fields))
	}
	return fields
}

// TestGarbledBodies sends each route that takes JSON what is none, and in place of
// each of its fields what may not stand there: none is the server's fault, and every
// refusal has the one form.
func TestGarbledBodies(t *testing.T) {
	t.Parallel()
	a := ofAlice(t)
	values := []string{"null", "true", "-1", "1e400", "99999999999999999999", `"x"`, `""`, `"\ud800"`, "[]", "{}", `["x"]`, `[null]`, `{"x":{"x":[1]}}`, strings.Repeat("[", 20000)}
	broken := []string{"{", "[]", "null", `"x"`, "{}}", `{"":1}`, "{\"\xff\":1}", `{"no_such_field":1}`, strings.Repeat(`{"a":`, 20000)}
	asked := 0
	for route, fields := range a.fields(t) {
		bodies := slices.Clone(broken)
		if given := strings.TrimSuffix(routes[route].body, "}"); given != "" && len(fields) > 0 {
			for _, name := range fields {
				for _, value := range values {
					comma := ", "
					if given == "{" {
						comma = ""
					}
					bodies = append(bodies, fmt.Sprintf("%s%s%q: %s}", given, comma, name, value))
				}
			}
		}
		for _, body := range bodies {
			asked++
			a.garbled(t, route, strings.NewReplacer("SESSION", "work", "EXEC", a.ids["exec"]).Replace(body))
		}
	}
	if asked < 1000 {
		t.Errorf("%d bodies were sent", asked)
	}
	if status, body := a.ask(t, "alice", "GET /v1/sessions/{session}", "work"); status != http.StatusOK {
		t.Errorf("afterwards the session is %d: %s", status, body)
	}
}

func (a alices) garbled(t *testing.T, route, text string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	for name, id := range a.ids {
		path = strings.ReplaceAll(path, "{"+name+"}", id)
	}
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	status, body := a.send(ctx, t, "alice", method, path, text)
	if status < 400 {
		return
	}
	var p sandbox.Problem
	shown := text[:min(len(text), 200)]
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Code != status || p.Message == "" || p.Kind == sandbox.Internal.String() {
		t.Errorf("%s with %s is answered %d: %s", route, shown, status, body)
	}
}
