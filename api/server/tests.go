package server

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/exercise"
	"github.com/caisson-dev/caisson/testloop"
)

// tests judges solutions by tests or by cases, as a line of `caisson test --batch`
// is judged.
func tests(s *Server) {
	result := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "all_passed, totals, tests and more: docs/testing.md"}
	handleRaw(s, call{"RunTests", post, "/v1/tests", "Judge a solution by tests or by cases", 0}, map[string]*huma.Schema{typeJSON: result}, func(in *struct{ Body testloop.Exercise }, w http.ResponseWriter, r *http.Request) error {
		judged, err := exercise.Judge(r.Context(), s.svc, in.Body)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", typeJSON)
		_ = json.NewEncoder(w).Encode(judged) // who asked may be gone
		return nil
	})
}

// textsSchema describes [testloop.Texts]: files by name, or one text.
type textsSchema struct{}

// Schema implements [huma.SchemaProvider].
func (textsSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString}, {Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString}},
	}, Description: "a text, or {name: text}"}
}

// nameOrNumber describes a [testloop.Name].
type nameOrNumber struct{}

// Schema implements [huma.SchemaProvider].
func (nameOrNumber) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}}, Description: "what tells it from others; it may be left out"}
}
