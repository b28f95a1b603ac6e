// Package otlp sends the spans of package telemetry to an OpenTelemetry
// collector, as OTLP over HTTP in its JSON encoding. It speaks no gRPC and no
// protobuf: the exporter that does adds half a millisecond to every start of the
// command, also to those that trace nothing.
package otlp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/telemetry"
)

// Config says where spans go. Endpoint is required.
type Config struct {
	// Endpoint is the collector's address, http or https, below which v1/traces
	// takes spans. Exact says that it is itself what takes them.
	Endpoint string
	Exact    bool
	// Headers go with every request, as OTEL_EXPORTER_OTLP_HEADERS has them:
	// name=value, percent-encoded, separated by commas.
	Headers string
	// Service names this program; "" is caisson. Version is its own.
	Service, Version string
	// Parent is the span that runs belong to, as TRACEPARENT has it. One that is
	// none is not heeded.
	Parent string
	Log    *slog.Logger // nil discards
}

// patience bounds one request, and the sending of what is left at the end.
const patience = 5 * time.Second

// Exporter sends spans. It is safe for concurrent use. Its owner closes it.
type Exporter struct {
	api.Tracer
	provider *trace.TracerProvider
	parent   api.SpanContext
}

// New checks a Config and begins to send. Errors: Invalid.
func New(c Config) (*Exporter, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, sandbox.Errorf(sandbox.Invalid, "%s is not the address of a collector", sandbox.ShownAddress(c.Endpoint)).
			WithHint("set CAISSON_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT to an address such as http://localhost:4318")
	}
	if !c.Exact {
		u = u.JoinPath("v1/traces")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &sender{url: u.String(), headers: headers(c.Headers), log: c.Log, client: &http.Client{
		Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	provider := trace.NewTracerProvider(trace.WithBatcher(s), trace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", cmp.Or(c.Service, "caisson")), attribute.String("service.version", c.Version))))
	within := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": c.Parent})
	return &Exporter{Tracer: provider.Tracer("github.com/caisson-dev/caisson"), provider: provider, parent: api.SpanContextFromContext(within)}, nil
}

var _ telemetry.Tracer = (*Exporter)(nil)

// Start begins a span: within that of ctx, else within the parent of all.
func (e *Exporter) Start(ctx context.Context, name string, opts ...api.SpanStartOption) (context.Context, api.Span) {
	if !api.SpanContextFromContext(ctx).IsValid() && e.parent.IsValid() {
		ctx = api.ContextWithRemoteSpanContext(ctx, e.parent)
	}
	return e.Tracer.Start(ctx, name, opts...)
}

// Close sends what is left, within its patience. It is idempotent.
func (e *Exporter) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return e.provider.Shutdown(ctx)
}

// headers reads a list of them; what is none is left out.
func headers(list string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	for pair := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if plain, err := url.PathUnescape(strings.TrimSpace(value)); ok && err == nil {
			h.Set(strings.TrimSpace(name), plain)
		}
	}
	return h
}

// sender posts spans.
type sender struct {
	url     string
	headers http.Header
	client  *http.Client
	log     *slog.Logger
}

// ExportSpans posts spans once. That they are lost is told, and fails nothing.
func (s *sender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if err := s.post(ctx, spans); err != nil {
		s.log.Warn("spans are lost: their collector did not take them", "spans", len(spans), "error", err)
	}
	return nil
}

func (s *sender) post(ctx context.Context, spans []trace.ReadOnlySpan) error {
	body, err := json.Marshal(encode(spans))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return sandbox.ShownError(err)
	}
	req.Header = s.headers
	res, err := s.client.Do(req)
	if err != nil {
		return sandbox.ShownError(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is used again
	if res.StatusCode/100 != 2 {
		return sandbox.Errorf(sandbox.Unavailable, "it answered %s", res.Status)
	}
	return nil
}

// Shutdown gives up idle connections.
func (s *sender) Shutdown(context.Context) error { s.client.CloseIdleConnections(); return nil }
