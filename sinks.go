package caisson

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/bridge/sink"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/store"
)

// sinkPatience bounds how long the last changes are waited for at the end.
const sinkPatience = 10 * time.Second

// sinks hands changes on to those whom the settings name.
func (c *Caisson) sinks(feed *bridge.Feed, journal store.Store, box *outbox.Outbox) error {
	var all []sink.Sink
	fail := func(err error) error {
		for _, s := range all {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	for name, open := range map[string]func(string) (sink.Sink, error){
		"CAISSON_CHANGES_FILE": sink.File, "CAISSON_CHANGES_COMMAND": sink.Command,
		"CAISSON_CHANGES_WEBHOOK": func(string) (sink.Sink, error) {
			return &posting{journal: journal, box: box, to: toChangesWebhook}, nil // where to is the outbox's to know
		},
	} {
		value := c.getenv(name)
		if value == "" {
			continue
		}
		s, err := open(value)
		if err != nil {
			return fail(err)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var pumps sync.WaitGroup
	for _, s := range all {
		news := feed.Subscribe(context.Background()) // until the feed is closed: what nobody took then is counted
		pumps.Go(func() {
			sink.Pump(ctx, news, s, func(lost int, err error) { c.cfg.Log.Warn("changes were not handed on", "lost", lost, "error", err) })
		})
	}
	c.atEnd(func() error {
		err := feed.Close()
		slow := time.AfterFunc(sinkPatience, cancel)
		pumps.Wait()
		slow.Stop()
		cancel()
		for _, s := range all {
			if failed := s.Close(); failed != nil {
				c.cfg.Log.Warn("who is told of changes failed", "error", failed) // what ran has ended as it has
			}
		}
		return err
	})
	return nil
}
