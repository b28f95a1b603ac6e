package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// problem is an error as it is answered.
type problem struct {
	wire.Problem
	header http.Header
}

var (
	_ huma.StatusError  = (*problem)(nil)
	_ huma.HeadersError = (*problem)(nil)
)

// Error implements error.
func (p *problem) Error() string { return p.Message }

// GetStatus implements [huma.StatusError].
func (p *problem) GetStatus() int { return p.Code }

// GetHeaders implements [huma.HeadersError].
func (p *problem) GetHeaders() http.Header { return p.header }

// MarshalJSON writes it as [wire.Problem] is written.
func (p *problem) MarshalJSON() ([]byte, error) { return json.Marshal(p.Problem) }

// problemOf is an error of a call, with what came of it nonetheless.
func problemOf(ctx context.Context, err error, result any) *problem {
	p := &problem{Problem: wire.ProblemOf(err, requestID(ctx), result), header: http.Header{}}
	later, ok := errors.AsType[wire.RetryAfter](err)
	switch {
	case ok:
		p.header.Set("Retry-After", strconv.FormatInt(int64((later.RetryAfter().Seconds())+0.999), 10))
	case p.Code == http.StatusTooManyRequests || p.Code == http.StatusServiceUnavailable:
		p.header.Set("Retry-After", "1")
	}
	return p
}

// ill is a request that cannot be meant, for a status of its own.
func ill(ctx context.Context, code int, hint, format string, args ...any) *problem {
	p := problemOf(ctx, sandbox.Errorf(sandbox.Invalid, format, args...).WithHint("%s", hint), nil)
	p.Code = code
	return p
}

// writeProblem answers an error outside of huma.
func writeProblem(w http.ResponseWriter, p *problem) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.Code)
	_ = json.NewEncoder(w).Encode(p) // who asked may be gone
}

// asProblem puts the errors that huma finds in requests into our form. It is a
// [huma.Transformer].
func asProblem(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	ctx.SetHeader("Content-Type", "application/json")
	var details []string
	for _, d := range m.Errors {
		details = append(details, detail(d))
	}
	slices.Sort(details)
	message := m.Detail
	if len(details) > 0 {
		message = strings.Join(slices.Compact(details), "; ")
	}
	return ill(ctx.Context(), statusOf(m.Status), "see /openapi.json for what this call takes", "%s", message), nil
}

// detail tells of one thing in a request, and does not repeat the whole of it.
func detail(d *huma.ErrorDetail) string {
	if d.Location == "" {
		return d.Message
	}
	return fmt.Sprintf("%s: %s", d.Location, d.Message)
}

// statusOf is the status of an error that huma found: what has another shape than
// the schema says is [sandbox.Invalid] as any other.
func statusOf(code int) int {
	if code == http.StatusUnprocessableEntity {
		return http.StatusBadRequest
	}
	return code
}

// humaContext has another name, since one of its methods has that.
type humaContext = huma.Context

// plainStatus is a context whose statuses are those of [statusOf].
type plainStatus struct{ humaContext }

// SetStatus implements [huma.Context].
func (c plainStatus) SetStatus(code int) { c.humaContext.SetStatus(statusOf(code)) }

// Unwrap gives the context that the adapter made.
func (c plainStatus) Unwrap() huma.Context { return c.humaContext }
