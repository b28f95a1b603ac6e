package otlp

import (
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
)

// What follows is the part that we use of ExportTraceServiceRequest, as
// https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding has it: ids in
// hex, numbers of 64 bits as strings, enums as numbers.
type request struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource struct {
		Attributes []keyValue `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type scopeSpans struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []span `json:"spans"`
}

type span struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Parent     string     `json:"parentSpanId,omitempty"`
	State      string     `json:"traceState,omitempty"`
	Flags      byte       `json:"flags,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes []keyValue `json:"attributes,omitempty"`
	Status     struct {
		Code    int    `json:"code,omitempty"`
		Message string `json:"message,omitempty"`
	} `json:"status"`
}

type keyValue struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

type value struct {
	String *string `json:"stringValue,omitempty"`
	Int    string  `json:"intValue,omitempty"`
	Bool   *bool   `json:"boolValue,omitempty"`
}

// The enums' numbers.
const (
	kindInternal = 1
	statusError  = 2
)

// encode writes spans, which are of one resource and one scope: those of their
// provider.
func encode(spans []trace.ReadOnlySpan) request {
	var one scopeSpans
	var rs resourceSpans
	for _, s := range spans {
		out := span{
			TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(), State: s.SpanContext().TraceState().String(),
			Flags: byte(s.SpanContext().TraceFlags()), Name: s.Name(), Kind: kindInternal, Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Attributes: attributes(s.Attributes()),
		}
		if s.Parent().SpanID().IsValid() {
			out.Parent = s.Parent().SpanID().String()
		}
		if s.Status().Code == codes.Error {
			out.Status.Code, out.Status.Message = statusError, s.Status().Description
		}
		one.Spans, one.Scope.Name = append(one.Spans, out), s.InstrumentationScope().Name
		rs.Resource.Attributes = attributes(s.Resource().Attributes())
	}
	rs.ScopeSpans = []scopeSpans{one}
	return request{ResourceSpans: []resourceSpans{rs}}
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(list []attribute.KeyValue) []keyValue {
	var out []keyValue
	for _, kv := range list {
		var v value
		switch kv.Value.Type() {
		case attribute.INT64:
			v.Int = strconv.FormatInt(kv.Value.AsInt64(), 10)
		case attribute.BOOL:
			b := kv.Value.AsBool()
			v.Bool = &b
		default:
			s := kv.Value.String()
			v.String = &s
		}
		out = append(out, keyValue{string(kv.Key), v})
	}
	return out
}
