package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// Extract returns a context within the span that a request's headers name, as
// traceparent has it, where they name one.
func Extract(ctx context.Context, header map[string][]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
}

// Inject names the span of ctx, where there is one, in a request's headers.
func Inject(ctx context.Context, header map[string][]string) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
}
