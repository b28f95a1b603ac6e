package policy_test

import (
	"context"
	"errors"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// scanner is a func as a Scanner.
type scanner func(ctx context.Context, r facts.Request) (*facts.Document, error)

func (f scanner) Scan(ctx context.Context, r facts.Request) (*facts.Document, error) {
	return f(ctx, r)
}

func load(t testing.TB, c policy.Config) *policy.Policy {
	t.Helper()
	if c.Rules == nil {
		c.Rules = policies.FS
	}
	p, err := policy.Load(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rmRoot is what `rm -rf /` is.
func rmRoot() *facts.Document {
	return &facts.Document{Meta: facts.Meta{Lang: facts.Shell, SHA256: sumOfABC}, Files: []facts.File{
		{At: facts.At{Pos: facts.Pos{Line: 1, Col: 1}}, Op: facts.OpDelete, Path: "/", Class: "root", Folded: true, Recursive: true, By: "rm"}}}
}

func netDoc() *facts.Document {
	return &facts.Document{Meta: facts.Meta{Lang: facts.Python, SHA256: sumOfABC}, Net: []facts.Net{
		{At: facts.At{Pos: facts.Pos{Line: 3, Col: 5}}, Op: facts.OpRequest, Host: "x.test", Class: "public", Folded: true, By: "requests.get"}}}
}

func ids(d sandbox.Decision) []string {
	out := make([]string, len(d.Findings))
	for i, f := range d.Findings {
		out[i] = f.ID
	}
	return out
}

func TestDecide(t *testing.T) {
	p := load(t, policy.Config{})
	d := p.Decide(t.Context(), &facts.Document{}, policy.Request{})
	if d.Verdict != sandbox.Allow || d.Level != sandbox.Safe || len(d.Findings) != 0 {
		t.Fatalf("empty document: %+v", d)
	}
	d = p.Decide(t.Context(), rmRoot(), policy.Request{})
	if d.Verdict != sandbox.Deny || d.Level != sandbox.Critical || !slices.Contains(ids(d), "SBX-BL-0001") {
		t.Fatalf("rm -rf /: %+v", d)
	}
	d = p.Decide(t.Context(), netDoc(), policy.Request{File: "a.py"})
	if d.Verdict != sandbox.Ask || d.Level != sandbox.High || d.Findings[0].Line != 3 || d.Findings[0].File != "a.py" {
		t.Fatalf("network: %+v", d)
	}
	if d.PolicyRevision == "" || d.Findings[0].Remediation == "" {
		t.Fatalf("incomplete: %+v", d)
	}
}

func TestDoubtDenies(t *testing.T) {
	var none *policy.Policy
	if d := none.Judge(t.Context(), policy.Request{}); d.Verdict != sandbox.Deny {
		t.Errorf("nil policy: %+v", d)
	}
	if d := load(t, policy.Config{}).Judge(t.Context(), policy.Request{}); d.Verdict != sandbox.Deny {
		t.Errorf("no scanner: %+v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := load(t, policy.Config{}).Decide(ctx, rmRoot(), policy.Request{}); d.Verdict != sandbox.Deny {
		t.Errorf("canceled: %+v", d)
	}
	slow := map[string]fstest.MapFS{"slow": {"a.rego": {Data: []byte("package caisson.user.slow\n\nfindings contains f if {\n\tsome i in numbers.range(1, 100000000)\n\ti == 0\n\tf := {\"id\": \"x\", \"severity\": \"low\"}\n}\n")}}}
	p := load(t, policy.Config{User: userFS(slow), Timeout: 50 * time.Millisecond})
	if d := p.Decide(t.Context(), &facts.Document{}, policy.Request{}); d.Verdict != sandbox.Deny {
		t.Errorf("runaway rule: %+v", d)
	}
}

func TestScannerFailuresAreOpaque(t *testing.T) {
	for name, s := range map[string]scanner{
		"error": func(context.Context, facts.Request) (*facts.Document, error) { return nil, errors.New("crashed") },
		"nil":   func(context.Context, facts.Request) (*facts.Document, error) { return nil, nil },
		"lie":   func(context.Context, facts.Request) (*facts.Document, error) { return &facts.Document{}, nil },
		"hang": func(ctx context.Context, _ facts.Request) (*facts.Document, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, policy.Config{Scanner: s, ScanTimeout: 50 * time.Millisecond})
			d := p.Judge(t.Context(), policy.Request{Language: "python", Code: []byte("print(1)")})
			if d.Verdict != sandbox.Ask || d.Level < sandbox.High || !slices.Contains(ids(d), "SBX-EV-0001") {
				t.Fatalf("%+v", d)
			}
		})
	}
}

func TestUserRulesOnlyAdd(t *testing.T) {
	bundle := map[string]fstest.MapFS{"team": {"a.rego": {Data: []byte("package caisson.user.team\n\nfindings contains {\"id\": \"T1\", \"title\": \"no requests\", \"severity\": \"medium\", \"category\": \"team\", \"msg\": \"no\", \"verdict\": \"deny\", \"at\": n.at} if {\n\tsome n in input.net.public.request\n}\n\nfindings contains {\"id\": \"T2\", \"severity\": \"low\", \"verdict\": \"allow\"} if input.meta\n")}}}
	p := load(t, policy.Config{User: userFS(bundle)})
	d := p.Decide(t.Context(), netDoc(), policy.Request{})
	if d.Verdict != sandbox.Deny || !slices.Contains(ids(d), "user/team/T1") || !slices.Contains(ids(d), "SBX-NET-0001") {
		t.Fatalf("%+v", d)
	}
	if d := p.Decide(t.Context(), rmRoot(), policy.Request{}); d.Verdict != sandbox.Deny {
		t.Fatalf("a user rule lowered the blacklist: %+v", d)
	}
}

func TestUserRulesAreRestricted(t *testing.T) {
	for name, body := range map[string]string{
		"network": `findings contains f if f := http.send({"method": "get", "url": "http://x.test"})`,
		"clock":   `findings contains f if f := time.now_ns()`,
		"lookup":  `findings contains f if f := net.lookup_ip_addr("x.test")`,
		"env":     `findings contains f if f := opa.runtime()`,
		"random":  `findings contains f if f := rand.intn("x", 5)`,
	} {
		fsys := map[string]fstest.MapFS{"u": {"a.rego": {Data: []byte("package caisson.user.u\n\n" + body + "\n")}}}
		if _, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, User: userFS(fsys)}); !errors.Is(err, sandbox.Invalid) {
			t.Errorf("%s: loaded, err %v", name, err)
		}
	}
	fsys := map[string]fstest.MapFS{"u": {"a.rego": {Data: []byte("package caisson.rules.files\n\nfindings := set()\n")}}}
	if _, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, User: userFS(fsys)}); err == nil || !strings.Contains(err.Error(), "package") {
		t.Errorf("a user rule took a shipped package: %v", err)
	}
}

// What a user's rule says wrongly is refused when it is read, with its line, and
// does not turn into a refusal of all that it matches.
func TestUserRulesAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, want string }{
		{"no severity", `findings contains {"id": "A"} if input.net`, "a.rego:3: a finding without severity: give it"},
		{"none in what the body makes", "findings contains f if {\n\tinput.net\n\tf := {\"id\": \"A\", \"msg\": \"m\"}\n}", "a.rego:5: a finding without severity"},
		{"none in a set", `findings := {{"id": "A"}}`, "a.rego:3: a finding without severity"},
		{"a severity that is none", `findings contains {"id": "A", "severity": "hihg"}`, `a.rego:3: there is no severity "hihg"`},
		{"a verdict that is none", `findings contains {"id": "A", "severity": "low", "verdict": "block"}`, `a.rego:3: there is no verdict "block"`},
		{"a key that is none", `findings contains {"id": "A", "severity": "low", "message": "m"}`, `a.rego:3: a finding has no "message"`},
		{"no id", `findings contains {"severity": "low"}`, "a.rego:3: a finding without id"},
		{"a severity that is made", "level := \"low\"\n\nfindings contains {\"id\": \"A\", \"severity\": level}", ""},
		{"a finding that is made", `findings contains object.union({"id": "A"}, {"severity": "low"})`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fsys := map[string]fstest.MapFS{"my-team": {"a.rego": {Data: []byte("package caisson.user[\"my-team\"]\n\n" + tt.body + "\n")}}}
			_, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, User: userFS(fsys)})
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// sumOfABC is the digest of a source that reads "abc".
const sumOfABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestWaivers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data := fstest.MapFS{"waivers.yaml": {Data: []byte("waivers:\n- {rule: SBX-NET-0001, digest: " + sumOfABC + ", expires: 2026-01-02T00:00:00Z}\n- {rule: SBX-BL-0001, digest: " + sumOfABC + ", expires: 2026-01-02T00:00:00Z}\n")}}
	at := now
	p := load(t, policy.Config{Data: data, Now: func() time.Time { return at }})
	if d := p.Decide(t.Context(), netDoc(), policy.Request{}); d.Verdict != sandbox.Allow {
		t.Fatalf("waived: %+v", d)
	}
	if d := p.Decide(t.Context(), rmRoot(), policy.Request{}); d.Verdict != sandbox.Deny {
		t.Fatalf("the blacklist was waived: %+v", d)
	}
	other := netDoc()
	other.Meta.SHA256 = "def"
	if d := p.Decide(t.Context(), other, policy.Request{}); d.Verdict != sandbox.Ask {
		t.Fatalf("waived for another source: %+v", d)
	}
	at = now.Add(48 * time.Hour)
	if d := p.Decide(t.Context(), netDoc(), policy.Request{}); d.Verdict != sandbox.Ask {
		t.Fatalf("waived after it expired: %+v", d)
	}
}

// TestWrongData is data that would not do what its author thinks.
func TestWrongData(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"settings.yaml", "threshold: {deny: medium}", `there is no "threshold" in it, but thresholds, severity, settings`},
		{"settings.yaml", "thresholds: {ask: high, denied: medium}", "denied"},
		{"settings.yaml", "thresholds: {ask: high}\nseverity: {SBX-NET-1: medium}", "unknown rule SBX-NET-1"},
		{"blacklist.yaml", "blacklists: []", `no "blacklists"`},
		{"waivers.yaml", "waivers: []\n---\nwaivers: []", "line 2: a further document begins"},
		{"waivers.yaml", "waiver: []", `no "waiver"`},
		{"waivers.yaml", "waivers: [{rule: SBX-NET-0001, digest: " + sumOfABC + "}]", "waiver 1: rule, digest and expires"},
		{"waivers.yaml", "waivers: [{rule: SBX-NET-0001, digest: abc, expires: 2026-01-02T00:00:00Z}]", "64 hexadecimal digits"},
		{"waivers.yaml", "waivers: [{rule: SBX-NET-0001, digest: " + sumOfABC + ", expires: 2026-01-02T00:00:00Z, reasons: none}]", "reasons"},
		{"waivers.yaml", "waivers: [{rule: SBX-NET-1, digest: " + sumOfABC + ", expires: 2026-01-02T00:00:00Z}]", "no rule SBX-NET-1"},
	} {
		data := fstest.MapFS{c.file: {Data: []byte(c.text)}}
		for _, lazy := range []bool{false, true} {
			_, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Data: data, Lazy: lazy})
			if !errors.Is(err, sandbox.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, lazy %v: %v", c.text, lazy, err)
			}
		}
	}
	data := fstest.MapFS{"waivers.yaml": {Data: []byte("waivers: [{rule: user/mine/X-1, digest: " + sumOfABC + ", expires: 2026-01-02T00:00:00Z}]")}}
	if _, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Data: data}); err != nil {
		t.Errorf("a waiver of a user's rule: %v", err)
	}
}

func TestReload(t *testing.T) {
	data := fstest.MapFS{}
	p := load(t, policy.Config{Data: data})
	before := p.Revision()
	data["settings.yaml"] = &fstest.MapFile{Data: []byte("thresholds: {ask: nonsense}\n")}
	if err := p.Reload(t.Context()); !errors.Is(err, sandbox.Invalid) || p.Revision() != before {
		t.Fatalf("wrong settings were taken: %v", err)
	}
	settings, err := policies.FS.ReadFile("data/settings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data["settings.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(string(settings), "severity: {}", "severity: {SBX-NET-0001: medium}", 1))}
	if err := p.Reload(t.Context()); err != nil || p.Revision() == before {
		t.Fatalf("reload: %v", err)
	}
	if d := p.Decide(t.Context(), netDoc(), policy.Request{}); d.Verdict != sandbox.Allow || d.Level != sandbox.Medium {
		t.Fatalf("severity from data: %+v", d)
	}
}

// A lazy policy says the same, and one whose catalogue turns out to be broken
// refuses what it finds something in.
func TestLazy(t *testing.T) {
	lazy, eager := load(t, policy.Config{Lazy: true}), load(t, policy.Config{})
	if got, want := lazy.Decide(t.Context(), rmRoot(), policy.Request{}), eager.Decide(t.Context(), rmRoot(), policy.Request{}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	if got, want := lazy.Rules(), eager.Rules(); !reflect.DeepEqual(got, want) {
		t.Errorf("%d rules, not %d", len(got), len(want))
	}
	broken := policy.Config{Rules: policies.FS, Data: fstest.MapFS{"blacklist.yaml": {Data: []byte("blacklist: [{id: X}]")}}}
	if _, err := policy.Load(t.Context(), broken); !errors.Is(err, sandbox.Invalid) {
		t.Errorf("a rule without a title: %v", err)
	}
	broken.Lazy = true
	p := load(t, broken)
	if d := p.Decide(t.Context(), rmRoot(), policy.Request{}); d.Verdict != sandbox.Deny || d.Findings[0].ID != "SBX-POLICY" {
		t.Errorf("a broken catalogue: %+v", d)
	}
}

func TestCatalogueIsComplete(t *testing.T) {
	rules := load(t, policy.Config{}).Rules()
	if len(rules) < 70 {
		t.Fatalf("%d rules", len(rules))
	}
	for _, r := range rules {
		if len(r.CWE) == 0 && len(r.Attack) == 0 {
			t.Errorf("%s has neither CWE nor ATT&CK", r.ID)
		}
	}
}

func TestCache(t *testing.T) {
	calls := 0
	s := scanner(func(context.Context, facts.Request) (*facts.Document, error) {
		calls++
		d := netDoc()
		d.Meta.SHA256 = sumOfABC
		return d, nil
	})
	p := load(t, policy.Config{Scanner: s})
	r := policy.Request{Language: "python", Code: []byte("abc")}
	first := p.Judge(t.Context(), r)
	if again := p.Judge(t.Context(), r); calls != 1 || again.Level != first.Level {
		t.Fatalf("%d scans", calls)
	}
	if p.Judge(t.Context(), policy.Request{Language: "bash", Code: []byte("abc")}); calls != 2 {
		t.Fatal("another language was answered from the cache")
	}
}

func BenchmarkDecide200Facts(b *testing.B) {
	p := load(b, policy.Config{})
	doc := &facts.Document{}
	for i := range 200 {
		at := facts.At{Lang: facts.Python, Pos: facts.Pos{Line: i + 1, Col: 1, EndLine: i + 1, EndCol: 9}}
		doc.Calls = append(doc.Calls, facts.Call{At: at, Name: "f" + string(rune('a'+i%26)), Args: []facts.Value{facts.Text("x")}})
	}
	doc.Files, doc.Net = rmRoot().Files, netDoc().Net
	for b.Loop() {
		if d := p.Decide(context.Background(), doc, policy.Request{}); d.Verdict != sandbox.Deny {
			b.Fatal(d)
		}
	}
}

// TestLoadRestoresTheCollector: what loading does for its own sake is over
// with it, also where several load at once.
func TestLoadRestoresTheCollector(t *testing.T) {
	before := debug.SetGCPercent(123)
	defer debug.SetGCPercent(before)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := policy.Load(t.Context(), policy.Config{Rules: policies.FS, Lazy: true}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := debug.SetGCPercent(123); got != 123 {
		t.Errorf("the collector is left at %d", got)
	}
}
