// Package telemetry tells what caisson does to who operates it: spans over the
// way of a run, and a log with one line an event. Spans go to whatever
// OpenTelemetry tracer a context comes with; without one they cost a look into
// the context. Neither holds code, arguments, variables or messages: names, ids
// and figures alone.
package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/caisson-dev/caisson/sandbox"
)

// Tracer makes spans. nil makes those of runs that are asked for within a span.
type Tracer = trace.Tracer

// scope names what our spans are made by.
const scope = "github.com/caisson-dev/caisson"

// ended is what there is to end where no span was begun.
func ended(error) {}

// Begin begins the span of a whole run: the tracer's, within the span of ctx
// where there is one. What it returns ends it, and is told whether it failed.
func Begin(ctx context.Context, tracer Tracer, name string) (context.Context, func(error)) {
	if tracer == nil {
		return Start(ctx, name)
	}
	return start(ctx, tracer, name)
}

// Start begins a span within the one of ctx; where there is none, it does
// nothing. What it returns ends it, and is told whether it failed.
func Start(ctx context.Context, name string, about ...slog.Attr) (context.Context, func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, ended
	}
	return start(ctx, parent.TracerProvider().Tracer(scope), name, about...)
}

func start(ctx context.Context, tracer Tracer, name string, about ...slog.Attr) (context.Context, func(error)) {
	ctx, span := tracer.Start(ctx, name)
	Note(ctx, about...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, sandbox.KindOf(err).String()) // an error's words may be a stranger's
		}
		span.End()
	}
}

// Note adds to the span of ctx. What is empty is left out. Its names are those of
// the log.
func Note(ctx context.Context, about ...slog.Attr) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	for _, a := range about {
		key := attribute.Key("caisson." + a.Key)
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindInt64:
			span.SetAttributes(key.Int64(v.Int64()))
		case slog.KindBool:
			span.SetAttributes(key.Bool(v.Bool()))
		default:
			if s := v.String(); s != "" {
				span.SetAttributes(key.String(s))
			}
		}
	}
}

// ID is an id to be told of.
func ID(name string, id sandbox.ID) slog.Attr { return slog.String(name, string(id)) }
