package caisson

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/monitor"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store"
)

// The receivers of letters, by the names that these have in the store.
const (
	toAlertsWebhook  = "alerts-webhook"
	toAlertsCommand  = "alerts-command"
	toChangesWebhook = "changes-webhook"
	toApprovals      = "approvals-webhook"
)

// approveWebhook is the setting of the server that answers questions.
const approveWebhook = "CAISSON_APPROVE_WEBHOOK"

// letters opens the outbox with the receivers that the settings name, and in a
// process that serves with the courier of callbacks.
func (c *Caisson) letters(journal store.Store, desk outbox.Correspondent, callbacks outbox.Courier) (*outbox.Outbox, error) {
	receivers := map[string]outbox.Receiver{}
	for name, setting := range map[string]string{toAlertsWebhook: "CAISSON_ALERTS_WEBHOOK", toChangesWebhook: "CAISSON_CHANGES_WEBHOOK"} {
		address := c.getenv(setting)
		if address == "" {
			continue
		}
		hook, err := outbox.Webhook(outbox.WebhookConfig{
			URL: address, Secret: []byte(c.getenv(setting + "_SECRET")), Plain: c.getenv(setting+"_PLAIN") != "", Setting: setting,
		})
		if err != nil {
			return nil, err
		}
		receivers[name] = hook
	}
	if address := c.getenv(approveWebhook); address != "" {
		private := c.getenv(approveWebhook+"_PRIVATE") == "1"
		hook, err := outbox.Webhook(outbox.WebhookConfig{
			URL: address, Secret: []byte(c.getenv(approveWebhook + "_SECRET")), Signed: true, Plain: private, Public: !private, Correspondent: desk,
			Setting: approveWebhook, Allows: approveWebhook + "_PRIVATE=1 allows http and private networks",
		})
		if err != nil {
			return nil, err
		}
		receivers[toApprovals] = hook
	}
	if line := c.getenv("CAISSON_ALERTS_COMMAND"); line != "" {
		receivers[toAlertsCommand] = outbox.Command(line)
	}
	couriers := map[string]outbox.Courier{}
	if c.cfg.Serve {
		couriers[executions.Courier] = callbacks
	}
	box, err := outbox.New(outbox.Config{Store: journal, Receivers: receivers, Couriers: couriers, Log: c.cfg.Log})
	if err == nil {
		c.atEnd(box.Close)
	}
	return box, err
}

// watch begins to watch the sandboxes of a manager. It ends after the manager has.
func (c *Caisson) watch(journal store.Store, mgr *manager.Manager, box *outbox.Outbox) (*monitor.Monitor, error) {
	file := c.cfg.File
	cfg := monitor.Config{
		Sandboxes: mgr, Store: journal, Rules: file.Monitor.Rules, Every: file.Monitor.Every, Posted: box.Posted, Actor: actor(), Log: c.cfg.Log,
	}
	for _, name := range box.Names() {
		if name == toAlertsWebhook || name == toAlertsCommand {
			cfg.Receivers = append(cfg.Receivers, name)
		}
	}
	mon, err := monitor.New(cfg)
	if err != nil {
		var rule *monitor.RuleError
		switch {
		case errors.As(err, &rule):
			err = file.Bad(rule.Line, err)
		case file.Monitor.Every != 0:
			err = file.Bad(0, err)
		}
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		mon.Run(ctx)
	}()
	c.atEnd(func() error {
		cancel()
		<-ended
		return nil
	})
	return mon, nil
}

// posting is a sink that puts lines into the outbox.
type posting struct {
	journal store.Store
	box     *outbox.Outbox
	to      string
}

// Send posts lines as one letter, which is durable then.
func (p *posting) Send(ctx context.Context, lines []byte) error {
	err := p.journal.Apply(ctx, sandbox.Transaction{PostLetters: []sandbox.Letter{{To: p.to, Body: lines, Posted: time.Now().UTC()}}})
	if err == nil {
		p.box.Posted()
	}
	return err
}

// Close has nothing to do: the outbox delivers.
func (*posting) Close() error { return nil }
