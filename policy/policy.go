package policy

import (
	"context"
	"encoding/hex"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Policy judges. It is safe for concurrent use; a nil one refuses everything.
type Policy struct {
	c    Config
	snap atomic.Pointer[snapshot]
	// cache belongs to all snapshots: its keys name the revision.
	cache *cache
}

// Load reads and prepares the rules. Its errors are [sandbox.Invalid] and name
// the file.
func Load(ctx context.Context, c Config) (*Policy, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := loadSnapshot(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &Policy{c: c, cache: newCache(c.CacheSize)}
	p.snap.Store(s)
	return p, nil
}

// Reload reads everything again. On an error the old rules stay.
func (p *Policy) Reload(ctx context.Context) error {
	s, err := loadSnapshot(ctx, p.c)
	if err != nil {
		return err
	}
	p.snap.Store(s)
	return nil
}

// Err says why it decides nothing; nil where it does.
func (p *Policy) Err() error {
	if p == nil || p.snap.Load() == nil {
		return sandbox.Errorf(sandbox.Invalid, "no policy is loaded")
	}
	return nil
}

// Revision names the rules and data that are in use.
func (p *Policy) Revision() string {
	if p == nil || p.snap.Load() == nil {
		return ""
	}
	return p.snap.Load().revision
}

// Rules lists the shipped rules, the blacklist, and those of users' rules that
// an annotation describes, by id, with their examples.
// It is empty where they cannot be read, which happens with Lazy alone: see
// there.
func (p *Policy) Rules() []Rule {
	rules, err := p.snap.Load().wholeCatalogue()
	if err != nil {
		return nil
	}
	out := make([]Rule, 0, len(rules))
	for _, id := range sortedKeys(rules) {
		out = append(out, rules[id])
	}
	return out
}

// Judge scans a text and decides. It always has an answer: what goes wrong on
// the way makes that stricter, never milder.
func (p *Policy) Judge(ctx context.Context, r Request) sandbox.Decision {
	d, _ := p.Examine(ctx, r)
	return d
}

// Examine is [Policy.Judge] that also says what the text loads and starts, as
// far as its facts tell. Both are kept for the same text and rules.
func (p *Policy) Examine(ctx context.Context, r Request) (sandbox.Decision, []Ref) {
	if p == nil || p.snap.Load() == nil {
		return refusal("", "no policy is loaded"), nil
	}
	s := p.snap.Load()
	if p.c.Scanner == nil {
		return refusal(s.revision, "no scanner is configured"), nil
	}
	if r.Language == Dockerfile {
		return p.JudgeDockerfile(ctx, r.Code, r.File), nil
	}
	key := keyOf(s.revision, r)
	sum := key.digest
	lasting := len(r.Context) == 0 && s.nextExpiry(p.c.Now()).IsZero() && !s.tellsTime()
	if len(r.Context) == 0 {
		if d, refs, ok := p.cache.get(key, p.c.Now()); ok {
			return d, refs
		}
	}
	if lasting {
		if d, refs, ok := p.c.recall(key); ok {
			p.cache.put(key, d, refs, time.Time{})
			return d, refs
		}
	}
	began := time.Now()
	scanCtx, cancel := context.WithTimeout(ctx, facts.Patience*p.c.ScanTimeout)
	defer cancel()
	doc, err := p.c.Scanner.Scan(scanCtx, facts.Request{Lang: key.lang, Code: r.Code, Owner: r.Owner, Start: r.Start, Calls: s.uses("calls"), Within: p.c.ScanTimeout})
	failed := err != nil || doc == nil
	if failed {
		doc = opaqueDocument(r, hex.EncodeToString(sum[:]), err)
	} else if doc.Meta.SHA256 != hex.EncodeToString(sum[:]) {
		failed = true
		doc = opaqueDocument(r, hex.EncodeToString(sum[:]), sandbox.Errorf(sandbox.Internal, "the scanner answered for another text"))
	}
	linked(doc, r.Link)
	d, sure := s.decide(ctx, p.c.after(time.Since(began)), doc, r)
	refs := refsOf(doc, r.Writable)
	if sure && !failed && len(r.Context) == 0 && !s.tellsTime() {
		p.cache.put(key, d, refs, s.nextExpiry(p.c.Now()))
	}
	if sure && !failed && lasting {
		p.c.remember(key, d, refs)
	}
	return d, refs
}

// Decide judges facts that are there already.
func (p *Policy) Decide(ctx context.Context, doc *facts.Document, r Request) sandbox.Decision {
	if p == nil || p.snap.Load() == nil {
		return refusal("", "no policy is loaded")
	}
	d, _ := p.snap.Load().decide(ctx, p.c, doc, r)
	return d
}

// refusal is the decision of a policy that cannot decide.
func refusal(revision, why string) sandbox.Decision {
	return sandbox.Decision{Verdict: sandbox.Deny, Level: sandbox.Critical, PolicyRevision: revision, Findings: []sandbox.Finding{{
		ID: "SBX-POLICY", Title: "The policy could not decide", Severity: sandbox.Critical, Category: "policy", Verdict: sandbox.Deny,
		Message: why, Remediation: "Mend the policy's rules and data; `caisson policy test` names what is wrong.",
	}}}
}

// opaqueDocument stands for a text that could not be scanned.
func opaqueDocument(r Request, digest string, err error) *facts.Document {
	detail := "no facts"
	if err != nil {
		detail = err.Error()
	}
	lang := facts.ParseLang(r.Language)
	return &facts.Document{Meta: facts.Meta{Lang: lang, SHA256: digest, Bytes: len(r.Code)},
		Dynamic: []facts.Dynamic{{At: facts.At{Lang: lang}, Kind: facts.DynOpaque, Detail: detail}}}
}

// decide evaluates the rules; sure is false where that failed.
func (s *snapshot) decide(ctx context.Context, c Config, doc *facts.Document, r Request) (d sandbox.Decision, sure bool) {
	now := c.Now()
	in := &inputBuilder{uses: s.uses, needs: s.needs, writable: r.Writable}
	input, err := in.build(doc, r.Context, now)
	if err != nil {
		return refusal(s.revision, "build input: "+err.Error()), false
	}
	ctx, stop := ownTurn(ctx, c.Timeout)
	defer stop()
	if !s.canSay(in.met) {
		return s.sum([]sandbox.Finding{}), true
	}
	q := s.query
	if s.selected != nil {
		if q, err = s.selected.queryFor(ctx, in.met); err != nil {
			return refusal(s.revision, err.Error()), false
		}
	}
	rs, err := q.Eval(ctx, rego.EvalParsedInput(input), rego.EvalTime(now))
	if err != nil {
		return refusal(s.revision, "evaluate rules: "+err.Error()), false
	}
	if len(rs) != 1 || len(rs[0].Expressions) != 1 {
		return refusal(s.revision, "the rules gave no answer"), false
	}
	raw, ok := rs[0].Expressions[0].Value.([]any)
	if !ok {
		return refusal(s.revision, "the rules gave an answer that is not a set of findings"), false
	}
	found := make([]sandbox.Finding, 0, len(raw))
	if len(raw) == 0 {
		return s.sum(found), true
	}
	rules, err := s.catalogued()
	if err != nil {
		return refusal(s.revision, err.Error()), false
	}
	for _, e := range raw {
		f, err := s.finding(e, in.places, rules)
		if err != nil {
			return refusal(s.revision, err.Error()), false
		}
		if !rules[f.ID].Deny && s.waived(f.ID, doc.Meta.SHA256, now) {
			continue
		}
		f.File = r.File
		found = append(found, f)
	}
	return s.sum(found), true
}

// nextExpiry is when a waiver's end may change a decision.
func (s *snapshot) nextExpiry(now time.Time) time.Time {
	var next time.Time
	for _, w := range s.waivers {
		if w.Expires.After(now) && (next.IsZero() || w.Expires.Before(next)) {
			next = w.Expires
		}
	}
	return next
}

// DecideContext decides about something that is no text: the rules see it as
// input.ctx. key, where not "", names all of it that can matter to a rule: that
// nothing was found in it is kept under that name, as what was decided about a
// text is.
func (p *Policy) DecideContext(ctx context.Context, key string, about map[string]any) sandbox.Decision {
	if p == nil || p.snap.Load() == nil {
		return refusal("", "no policy is loaded")
	}
	s := p.snap.Load()
	if d, ok := p.c.recallClean(key, s.revision); ok {
		return d
	}
	d, sure := s.decide(ctx, p.c, &facts.Document{}, Request{Context: about})
	if sure && key != "" && p.c.Keeper != nil && d.Verdict == sandbox.Allow && len(d.Findings) == 0 && s.nextExpiry(p.c.Now()).IsZero() && !s.tellsTime() {
		p.c.rememberSealed(cleanKey(key), s.revision, []byte(s.revision))
	}
	return d
}
