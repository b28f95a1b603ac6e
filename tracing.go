package caisson

import (
	"cmp"

	"github.com/caisson-dev/caisson/telemetry"
	"github.com/caisson-dev/caisson/telemetry/otlp"
)

// tracer sends spans where the settings say so, and is nil elsewhere: then runs
// are traced that a Go program asks for within a span of its own.
func (c *Caisson) tracer() (telemetry.Tracer, error) {
	env := c.cfg.Getenv
	exact := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	endpoint := cmp.Or(c.getenv("CAISSON_OTLP_ENDPOINT"), exact, env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if endpoint == "" || env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL")) == "grpc" && c.getenv("CAISSON_OTLP_ENDPOINT") == "" {
		c.cfg.Log.Warn("nothing is traced: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and caisson speaks http; CAISSON_OTLP_ENDPOINT names a collector for caisson alone")
		return nil, nil //nolint:nilnil // likewise
	}
	e, err := otlp.New(otlp.Config{
		Endpoint: endpoint, Exact: endpoint == exact, Headers: cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), env("OTEL_EXPORTER_OTLP_HEADERS")),
		Service: env("OTEL_SERVICE_NAME"), Version: Version(), Parent: env("TRACEPARENT"), Log: c.cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	c.atEnd(e.Close)
	return e, nil
}
