package client

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

func whichChanges(o api.ChangesOptions) url.Values {
	q := url.Values{}
	setString(q, "exec", string(o.Exec))
	setInt(q, "limit", int64(o.Limit))
	setBool(q, "exact", o.Exact)
	setBool(q, "recorded", o.Recorded)
	setBool(q, "names", o.Names)
	return q
}

// Changes implements [api.Changes].
func (c *Client) Changes(ctx context.Context, session string, o api.ChangesOptions) ([]sandbox.ChangeRecord, error) {
	return list[sandbox.ChangeRecord](ctx, c, request{method: get, path: path("/v1/sessions/%/changes", session), query: whichChanges(o)})
}

// Diff implements [api.Changes].
func (c *Client) Diff(ctx context.Context, session string, o api.ChangesOptions) ([]sandbox.FileDiff, error) {
	return list[sandbox.FileDiff](ctx, c, request{method: get, path: path("/v1/sessions/%/diff", session), query: whichChanges(o)})
}

// Undo implements [api.Changes].
func (c *Client) Undo(ctx context.Context, session string, o api.UndoOptions) (api.Undone, error) {
	return call[api.Undone](ctx, c, request{method: post, path: path("/v1/sessions/%/undo", session), body: o})
}

// Feed implements [api.Changes]: changes of all sessions of the server's process.
func (c *Client) Feed(ctx context.Context) iter.Seq[sandbox.ChangeNews] {
	return news[sandbox.ChangeNews](ctx, c, request{method: get, path: "/v1/changes"})
}

// CheckCode implements [api.Policy].
func (c *Client) CheckCode(ctx context.Context, language string, code []byte, file string) (sandbox.Decision, error) {
	return call[sandbox.Decision](ctx, c, request{method: post, path: "/v1/policy/check", body: wire.Check{Language: language, Base64: code, File: file}})
}

// Approvals implements [api.Approvals].
func (c *Client) Approvals(ctx context.Context, f sandbox.ApprovalFilter) ([]sandbox.Approval, error) {
	q := selection(f.Owner, f.Labels)
	setString(q, "digest", f.Digest)
	for _, state := range f.States {
		q.Add("state", string(state))
	}
	return listAll[sandbox.Approval](ctx, c, request{method: get, path: "/v1/approvals", query: q}, string(f.After), f.Limit)
}

// Approval implements [api.Approvals].
func (c *Client) Approval(ctx context.Context, id sandbox.ID) (sandbox.Approval, error) {
	return call[sandbox.Approval](ctx, c, request{method: get, path: path("/v1/approvals/%", string(id))})
}

// AnswerApproval implements [api.Approvals].
func (c *Client) AnswerApproval(ctx context.Context, a sandbox.ApprovalAnswer) (sandbox.Approval, error) {
	body := wire.Answer{Approve: a.Approve, Always: a.Always, By: a.By, Via: a.Via, Note: a.Note}
	return call[sandbox.Approval](ctx, c, request{method: post, path: path("/v1/approvals/%/answer", string(a.ID)), body: body})
}

// RevokeApproval implements [api.Approvals].
func (c *Client) RevokeApproval(ctx context.Context, id sandbox.ID, by string) (sandbox.Approval, error) {
	return call[sandbox.Approval](ctx, c, request{method: post, path: path("/v1/approvals/%/revoke", string(id)), body: wire.By{By: by}})
}

// Languages implements [api.Languages].
func (c *Client) Languages(ctx context.Context) ([]api.LanguageInfo, error) {
	return list[api.LanguageInfo](ctx, c, request{method: get, path: "/v1/languages"})
}

// LanguageOf implements [api.Languages].
func (c *Client) LanguageOf(file string) (string, error) {
	l, err := call[wire.Language](context.Background(), c, request{method: get, path: "/v1/languages/of", query: url.Values{"file": {file}}})
	return l.Language, err
}

// long is a call that takes long, and tells how it goes.
func long[O any](ctx context.Context, c *Client, path string, body any) (out O, err error) {
	end, err := c.events(ctx, request{method: post, path: path, body: body}, func(e event) error {
		var p sandbox.Progress
		if e.name != wire.EventProgress || json.Unmarshal(e.data, &p) != nil {
			return nil // of a newer server
		}
		c.cfg.Progress(p)
		return nil
	})
	if err != nil {
		return partly[O](err)
	}
	err = json.Unmarshal(end, &out)
	return out, err
}

// EnsureImage implements [api.Images].
func (c *Client) EnsureImage(ctx context.Context, name string) (sandbox.Image, error) {
	return long[sandbox.Image](ctx, c, "/v1/images/ensure", wire.ImageName{Name: name})
}

// MakeImage implements [api.Images].
func (c *Client) MakeImage(ctx context.Context, name string, o sandbox.MakeImageOptions) (sandbox.Image, error) {
	return long[sandbox.Image](ctx, c, "/v1/images/make", wire.MakeImage{ImageName: wire.ImageName{Name: name}, MakeImageOptions: o})
}

// PullImage implements [api.Images].
func (c *Client) PullImage(ctx context.Context, name string, o sandbox.PullImageOptions) (sandbox.Image, error) {
	return long[sandbox.Image](ctx, c, "/v1/images/pull", wire.PullImage{ImageName: wire.ImageName{Name: name}, PullImageOptions: o})
}

// PrewarmImages implements [api.Images].
func (c *Client) PrewarmImages(ctx context.Context, names []string) ([]api.ImageResult, error) {
	p, err := long[wire.Page[api.ImageResult]](ctx, c, "/v1/images/prewarm", wire.ImageNames{Names: names})
	return p.Items, err
}

// PruneImages implements [api.Images].
func (c *Client) PruneImages(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error) {
	return list[sandbox.PrunedImage](ctx, c, request{method: post, path: "/v1/images/prune", body: wire.PruneImages{DryRun: dryRun}})
}

// UnpackImage implements [api.ImageRoots].
func (c *Client) UnpackImage(ctx context.Context, name string) (sandbox.ImageRoot, error) {
	return long[sandbox.ImageRoot](ctx, c, "/v1/images/unpack", wire.ImageName{Name: name})
}

// UnpackedImages implements [api.ImageRoots].
func (c *Client) UnpackedImages(ctx context.Context) ([]sandbox.ImageRoot, error) {
	return list[sandbox.ImageRoot](ctx, c, request{method: get, path: "/v1/images/roots"})
}

// PinImages implements [api.ImageLock].
func (c *Client) PinImages(ctx context.Context, names []string) ([]sandbox.ImagePin, error) {
	return list[sandbox.ImagePin](ctx, c, request{method: post, path: "/v1/images/pin", body: wire.ImageNames{Names: names}})
}

// VerifyImages implements [api.ImageLock].
func (c *Client) VerifyImages(ctx context.Context) ([]sandbox.ImageCheck, error) {
	return list[sandbox.ImageCheck](ctx, c, request{method: get, path: "/v1/images/check"})
}

// Sweep implements [api.Housekeeping].
func (c *Client) Sweep(ctx context.Context, o api.SweepOptions) ([]sandbox.Orphan, error) {
	return list[sandbox.Orphan](ctx, c, request{method: post, path: "/v1/sweep", body: o})
}

// StateSizes implements [api.Housekeeping].
func (c *Client) StateSizes(ctx context.Context) ([]sandbox.StateSize, error) {
	return list[sandbox.StateSize](ctx, c, request{method: get, path: "/v1/state"})
}

// PoolShelves implements [api.Housekeeping].
func (c *Client) PoolShelves(ctx context.Context) ([]sandbox.PoolShelf, error) {
	return list[sandbox.PoolShelf](ctx, c, request{method: get, path: "/v1/pool"})
}

// Doctor implements [api.Doctor].
func (c *Client) Doctor(ctx context.Context) ([]api.Check, error) {
	return list[api.Check](ctx, c, request{method: get, path: "/v1/doctor"})
}

// Readings implements [api.Monitoring].
func (c *Client) Readings(ctx context.Context, f sandbox.ReadingFilter) ([]sandbox.Reading, error) {
	q := selection(f.Owner, f.Labels)
	setBool(q, "live", f.Live)
	setTime(q, "since", f.Since)
	setString(q, "session", f.Session)
	return listAll[sandbox.Reading](ctx, c, request{method: get, path: "/v1/readings", query: q}, string(f.After), f.Limit)
}

// Alerts implements [api.Monitoring].
func (c *Client) Alerts(ctx context.Context, f sandbox.AlertFilter) ([]sandbox.Alert, error) {
	q := selection(f.Owner, f.Labels)
	setBool(q, "firing", f.Firing)
	setString(q, "session", f.Session)
	setString(q, "rule", f.Rule)
	return listAll[sandbox.Alert](ctx, c, request{method: get, path: "/v1/alerts", query: q}, string(f.After), f.Limit)
}

// AlertNews implements [api.Monitoring]: of the server's process.
func (c *Client) AlertNews(ctx context.Context) iter.Seq[sandbox.AlertNews] {
	return news[sandbox.AlertNews](ctx, c, request{method: get, path: "/v1/alerts/news"})
}

// Metrics implements [api.Monitoring].
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	_, err := c.download(ctx, request{method: get, path: "/metrics"}, w)
	return err
}
