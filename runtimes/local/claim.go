//go:build linux

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// Made is what a sandbox was made of.
type Made struct {
	Image   string          `json:"image,omitempty"`
	Request json.RawMessage `json:"request"` // of the plan
}

// claimable and limitedClaimable are an [Instance] that can be made before anybody
// asks for it.
type (
	claimable        struct{ *Instance }
	limitedClaimable struct{ limited }
)

// Claim implements [runtimes.Claimer].
func (i claimable) Claim(_ context.Context, plan runtimes.Plan) error { return i.claim(plan) }

// Claim implements [runtimes.Claimer].
func (i limitedClaimable) Claim(_ context.Context, plan runtimes.Plan) error { return i.claim(plan) }

// claim gives the sandbox the limits of its control group, its user and workspace,
// and writes down whose it is. Errors: Unsupported where anything else differs from what it was made of,
// NotFound where it is gone.
func (i *Instance) claim(plan runtimes.Plan) error {
	dir := i.place.Folder(i.handle.ID)
	rec, err := readRecord(dir)
	if err != nil || rec.Made == nil {
		return sandbox.Errorf(sandbox.NotFound, "sandbox %s has ended", i.handle.ID.Short())
	}
	made, had, err := withoutLimits(rec.Made.Request)
	if err != nil {
		return err
	}
	asked, limits, err := withoutLimits(plan.Request)
	if err != nil {
		return err
	}
	changes := limits != had
	if i.place.Groups.Work() { // what each process inherits stays
		had.Memory, had.PeriodUS, had.QuotaUS = limits.Memory, limits.PeriodUS, limits.QuotaUS
		if !i.place.Alone { // else the agent was started with it
			had.PIDs = limits.PIDs
		}
	}
	arrives := asAsked(made, asked, plan.Spec)
	if plan.Spec.Image.ID != rec.Made.Image || limits != had || !maps.EqualFunc(made, asked, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		return sandbox.Errorf(sandbox.Unsupported, "sandbox %s was made as another than is asked for", i.handle.ID.Short())
	}
	if changes {
		if err := i.group().Make(limits); err != nil {
			return err
		}
	}
	if arrives {
		if err := i.arrive(rec, plan.Spec); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handle.Session, i.handle.Holder, i.handle.Language = plan.Spec.Session, plan.Spec.Holder, plan.Spec.Language
	rec.Handle = i.handle
	rec.Made.Request = plan.Request
	return writeRecord(dir, rec)
}

// withoutLimits takes the limits out of a request.
func withoutLimits(request json.RawMessage) (rest map[string]json.RawMessage, limits Limits, err error) {
	if err = json.Unmarshal(request, &rest); err == nil {
		err = json.Unmarshal(rest["limits"], &limits)
	}
	if err != nil {
		return nil, limits, sandbox.Errorf(sandbox.Invalid, "read the plan: %w", err)
	}
	delete(rest, "limits")
	return rest, limits, nil
}
