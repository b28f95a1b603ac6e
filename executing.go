package caisson

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// The settings of executions.
const (
	callbacksSecret   = "CAISSON_CALLBACKS_SECRET"
	callbacksPrivate  = "CAISSON_CALLBACKS_PRIVATE"
	executionsWorkers = "CAISSON_EXECUTIONS_WORKERS"
	executionsQueue   = "CAISSON_EXECUTIONS_QUEUE"
	executionsKeep    = "CAISSON_EXECUTIONS_KEEP"
)

// executions makes the book of executions; posted is told of letters. Where this process
// serves, times that the state has follow the clock first.
func (c *Caisson) executions(ctx context.Context, journal *sqlite.Store, state string, posted func()) (*executions.Book, error) {
	poster := outbox.NewPoster(outbox.PosterConfig{
		Private: c.getenv(callbacksPrivate) == "1", Allows: callbacksPrivate + "=1 at the server allows http and private networks",
	})
	c.atEnd(poster.Close)
	cfg := executions.Config{
		Store: journal, Poster: poster, Posted: posted, Dir: filepath.Join(state, "executions"), Lock: filepath.Join(state, "locks", "serve"),
		Secret: []byte(c.getenv(callbacksSecret)), Quota: func(owner string) int { return c.cfg.File.Quotas.Of(owner).Execs }, Actor: actor(), Log: c.cfg.Log,
	}
	for name, to := range map[string]*int{executionsWorkers: &cfg.Workers, executionsQueue: &cfg.Queue} {
		n, err := strconv.Atoi(cmp.Or(c.getenv(name), "0"))
		if err != nil || n < 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s %q is not a number", name, c.getenv(name)).WithHint("set it to a number above 0, or unset it")
		}
		*to = n
	}
	if v := c.getenv(executionsKeep); v != "" {
		keep, err := sandbox.ParseDuration(v)
		if err != nil || keep <= 0 {
			return nil, sandbox.Errorf(sandbox.Invalid, "%s %q is not a time", executionsKeep, v).WithHint("set it to a time such as 24h")
		}
		cfg.Keep = keep
	}
	book, err := executions.New(cfg)
	if err != nil || !c.cfg.Serve {
		return book, err
	}
	return book, book.FollowClock(ctx)
}

// startPatience bounds how long what a dead server left may take to be taken up.
const startPatience = 2 * time.Minute

// carryOut begins to carry executions out, and calls of functions that nobody waits
// for, where this process serves.
func (c *Caisson) carryOut(ctx context.Context, book *executions.Book, svc *service.Service) error {
	if !c.cfg.Serve {
		return nil
	}
	svc.Tidy(ctx)
	c.atEnd(book.Close)
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	if err := book.Start(ctx, svc); err != nil {
		return err
	}
	c.calls.Start()
	return nil
}
