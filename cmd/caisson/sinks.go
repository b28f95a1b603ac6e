package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/bridge/sink"
)

// sinkPatience bounds how long the last changes are waited for at the end.
const sinkPatience = 10 * time.Second

// sinks hands changes on to those whom the settings name.
func (a *app) sinks(feed *bridge.Feed, log *slog.Logger) error {
	var all []sink.Sink
	fail := func(err error) error {
		for _, s := range all {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	for name, open := range map[string]func(string) (sink.Sink, error){
		"CAISSON_CHANGES_FILE": sink.File, "CAISSON_CHANGES_COMMAND": sink.Command,
		"CAISSON_CHANGES_WEBHOOK": func(address string) (sink.Sink, error) {
			return sink.Webhook(address, []byte(a.getenv("CAISSON_CHANGES_WEBHOOK_SECRET")), a.getenv("CAISSON_CHANGES_WEBHOOK_PLAIN") != "")
		},
	} {
		value := a.getenv(name)
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
		news := feed.Subscribe(ctx)
		pumps.Go(func() {
			sink.Pump(ctx, news, s, func(lost int, err error) { log.Warn("changes were not handed on", "lost", lost, "error", err) })
		})
	}
	a.closers = append(a.closers, func() error {
		err := feed.Close()
		slow := time.AfterFunc(sinkPatience, cancel)
		pumps.Wait()
		slow.Stop()
		cancel()
		return fail(err)
	})
	return nil
}
