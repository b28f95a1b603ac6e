package approval

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/caisson-dev/caisson/sandbox"
)

// letter is what waits for a server to be asked. The question itself is in the
// store.
type letter struct {
	ID sandbox.ID `json:"id"`
	// Alone says that nobody else is asked who waits for the answer.
	Alone bool `json:"alone"`
}

// letters are what asking a server takes, to be posted with the question.
func (d *Desk) letters(a sandbox.Approval, alone bool) []sandbox.Letter {
	if d.c.Letters == "" {
		return nil
	}
	b, err := json.Marshal(letter{a.ID, alone})
	if err != nil {
		return nil // plain values always encode
	}
	return []sandbox.Letter{{To: d.c.Letters, Body: b, Posted: d.c.Now().UTC()}}
}

// Request is what a server is asked for a letter: the question as JSON, and its
// id as X-Caisson-Approval. What was answered meanwhile, or is too late, is
// asked no more.
func (d *Desk) Request(ctx context.Context, l sandbox.Letter) (headers map[string]string, body []byte, err error) {
	a, _, err := d.asking(ctx, l)
	if err != nil || a == nil {
		return nil, nil, err
	}
	body, err = json.Marshal(*a)
	return map[string]string{"X-Caisson-Approval": string(a.ID)}, body, err
}

// asking is the question of a letter, nil where it is none any more, and whether
// nobody else is asked.
func (d *Desk) asking(ctx context.Context, l sandbox.Letter) (*sandbox.Approval, bool, error) {
	var in letter
	if err := json.Unmarshal(l.Body, &in); err != nil {
		d.c.Log.Error("a letter about a question cannot be read", "letter", l.ID, "error", err)
		return nil, false, nil
	}
	a, err := d.c.Store.Approval(ctx, in.ID)
	switch {
	case errors.Is(err, sandbox.NotFound):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case a.State != sandbox.ApprovalPending || d.c.Now().After(a.Expires):
		return nil, false, nil
	}
	return &a, in.Alone, nil
}

// Reply hears what a server says about a letter: 200 with a reply as in [Command]
// answers, 202 or 204 means that the answer comes by another way (caisson
// approvals, the API), after 408, 425, 429 and 5xx it is asked again, and
// anything else is a failure, which refuses where nobody else is asked.
func (d *Desk) Reply(ctx context.Context, l sandbox.Letter, r sandbox.Reply) error {
	a, alone, err := d.asking(ctx, l)
	if err != nil || a == nil {
		return err
	}
	if r.Failed != nil {
		return d.unheard(ctx, *a, alone, r.Failed)
	}
	failed := sandbox.Errorf(sandbox.Unavailable, "the webhook answered %d %s", r.Status, http.StatusText(r.Status))
	switch {
	case r.Status == http.StatusAccepted, r.Status == http.StatusNoContent:
		return nil
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly, r.Status == http.StatusTooManyRequests, r.Status >= 500:
		return failed
	case r.Status != http.StatusOK:
		return d.unheard(ctx, *a, alone, failed)
	}
	ans, err := answer(r.Body, "webhook", r.From)
	if err != nil {
		return d.unheard(ctx, *a, alone, err)
	}
	ans.ID = a.ID
	if _, err = d.Answer(ctx, ans); errors.Is(err, sandbox.Conflict) {
		return nil // another answer came first
	}
	return err
}

// unheard is for a server that cannot answer: nobody waits for nothing.
func (d *Desk) unheard(ctx context.Context, a sandbox.Approval, alone bool, why error) error {
	d.c.Log.Warn("a server was asked in vain", "approval", a.ID, "error", why)
	if !alone {
		return nil
	}
	_, _, err := d.close(ctx, a, sandbox.ApprovalExpired, "the approver failed: "+told(why))
	return err
}

// told is an error with what helps.
func told(err error) string {
	if hint := sandbox.HintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}
