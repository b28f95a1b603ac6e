package server

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// call is one call of the API. name is the method of [api.Service] that answers
// it, where there is one.
type call struct {
	name, method, path, summary string
	status                      int // of an answer; 0 is 200, and 204 of one without a body
}

// operation describes a call; its tag is the noun of its path.
func (s *Server) operation(c call) huma.Operation {
	noun, _, _ := strings.Cut(strings.TrimPrefix(c.path, "/v1/"), "/")
	id := []rune(c.name)
	id[0] = unicode.ToLower(id[0])
	return huma.Operation{
		OperationID: string(id), Method: c.method, Path: c.path, Summary: c.summary, Tags: []string{noun}, DefaultStatus: c.status,
		MaxBodyBytes: int64(s.cfg.MaxBody) + 1, BodyReadTimeout: -1, // who listens bounds reading
		Responses: map[string]*huma.Response{"default": {
			Description: "what went wrong",
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schemaOf[wire.Problem](s)}},
		}},
	}
}

// schemaOf describes a type, by reference.
func schemaOf[T any](s *Server) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")
}

// answer is a body in JSON.
type answer[O any] struct{ Body O }

// handle answers a call with what f returns.
func handle[I, O any](s *Server, c call, f func(ctx context.Context, in *I) (O, error)) {
	huma.Register(s.api, s.operation(c), func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, problemOf(ctx, err, nil)
		}
		return &answer[O]{out}, nil
	})
}

// handlePartly is [handle] for what has something to tell beside an error too.
func handlePartly[I, O any](s *Server, c call, f func(ctx context.Context, in *I) (O, error)) {
	huma.Register(s.api, s.operation(c), func(ctx context.Context, in *I) (*answer[O], error) {
		out, err := f(ctx, in)
		if err != nil {
			return nil, problemOf(ctx, err, out)
		}
		return &answer[O]{out}, nil
	})
}

// handleNone is [handle] for a call that has no answer but that it was done.
func handleNone[I any](s *Server, c call, f func(ctx context.Context, in *I) error) {
	huma.Register(s.api, s.operation(c), func(ctx context.Context, in *I) (*struct{}, error) {
		if err := f(ctx, in); err != nil {
			return nil, problemOf(ctx, err, nil)
		}
		return nil, nil
	})
}

// nothing is the input of a call that takes none.
type nothing struct{}

// Selection is what every list can be asked for. Its name is exported for huma,
// which passes over what is not.
type Selection struct {
	OfOwner
	Label []string `query:"label,explode" doc:"KEY=VALUE; only what has all of them"`
}

// OfOwner selects what is an owner's.
type OfOwner struct {
	Owner string `query:"owner" doc:"only what is this owner's"`
	owned bool   // an owner was given, if only the one without a name
}

// Resolve implements [huma.Resolver].
func (o *OfOwner) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	o.owned = u.Query().Has("owner")
	return nil
}

func (o *OfOwner) owner() *string {
	if !o.owned {
		return nil
	}
	return &o.Owner
}

// Resolve implements [huma.Resolver].
func (l *Selection) Resolve(ctx huma.Context) []error {
	if errs := l.OfOwner.Resolve(ctx); errs != nil {
		return errs
	}
	for _, kv := range l.Label {
		if k, _, ok := strings.Cut(kv, "="); !ok || k == "" {
			return []error{&huma.ErrorDetail{Location: "query.label", Message: "write KEY=VALUE"}}
		}
	}
	return nil
}

func (l *Selection) labels() sandbox.Labels {
	if len(l.Label) == 0 {
		return nil
	}
	labels := sandbox.Labels{}
	for _, kv := range l.Label {
		k, v, _ := strings.Cut(kv, "=")
		labels[k] = v
	}
	return labels
}

// Paging says which page of a list is asked for.
type Paging struct {
	Cursor string `query:"cursor" doc:"the next of the page before"`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
}

// page is one page of a list that was asked for with one item more than a page
// has; cursor names an item.
func page[T any](p Paging, items []T, cursor func(T) string) wire.Page[T] {
	out := wire.Page[T]{Items: items}
	if len(items) > p.Limit {
		out.Items = items[:p.Limit]
		out.Next = cursor(out.Items[p.Limit-1])
	}
	if out.Items == nil {
		out.Items = []T{}
	}
	return out
}

// all is a list that has no pages.
func all[T any](items []T) wire.Page[T] {
	if items == nil {
		items = []T{}
	}
	return wire.Page[T]{Items: items}
}

const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
	del  = http.MethodDelete
)
