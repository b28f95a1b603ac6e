package api

import (
	"context"
	"io"
	"iter"

	"github.com/caisson-dev/caisson/sandbox"
)

// Monitoring tells what sandboxes use, and what rules made of it.
type Monitoring interface {
	// Readings returns what sandboxes use and have used, the newest sandbox first.
	// Asked for those that live, it begins to sample also those of sessions that no
	// process uses at the moment.
	Readings(ctx context.Context, filter sandbox.ReadingFilter) ([]sandbox.Reading, error)
	// Alerts returns alerts of all processes, the newest first.
	Alerts(ctx context.Context, filter sandbox.AlertFilter) ([]sandbox.Alert, error)
	// Metrics writes what is counted of all processes, in Prometheus's text format.
	Metrics(ctx context.Context, w io.Writer) error
	// AlertNews returns alerts that fire or are resolved in this process, until the
	// loop is left or ctx is done. A slow reader loses the newest, and is told how
	// many.
	AlertNews(ctx context.Context) iter.Seq[sandbox.AlertNews]
}
