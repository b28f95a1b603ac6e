package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Keeper keeps decisions beyond the process. What it gives back must be what it
// was given under that key, or nothing. It is safe for concurrent use.
type Keeper interface {
	Get(key string) ([]byte, bool)
	Put(key string, value []byte)
}

// kept is one decision as a [Keeper] has it.
type kept struct {
	Decision sandbox.Decision `json:"decision"`
	Refs     []Ref            `json:"refs"`
}

// keptKey names a decision by all that it depends on.
func (c *Config) keptKey(k cacheKey) string {
	h := sha256.New()
	for _, s := range []string{"caisson decision 4", c.Programs, k.revision, string(k.lang), hex.EncodeToString(k.digest[:]), k.file, hex.EncodeToString(k.start[:]), k.writable, k.link} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// recall gives a decision that was kept. What cannot be read is none.
func (c *Config) recall(k cacheKey) (sandbox.Decision, []Ref, bool) {
	if c.Keeper == nil {
		return sandbox.Decision{}, nil, false
	}
	var v kept
	if json.Unmarshal(c.unsealed(c.keptKey(k)), &v) != nil || v.Decision.PolicyRevision != k.revision || v.Decision.Verdict == "" {
		return sandbox.Decision{}, nil, false
	}
	return v.Decision, v.Refs, true
}

func (c *Config) remember(k cacheKey, d sandbox.Decision, refs []Ref) {
	if c.Keeper == nil {
		return
	}
	if b, err := json.Marshal(kept{d, refs}); err == nil {
		c.seal(c.keptKey(k), b)
	}
}

// cleanKey names what nothing was found in.
func cleanKey(key string) string { return "clean " + key }

// recallClean gives the decision about what nothing was found in before.
func (c *Config) recallClean(key, revision string) (sandbox.Decision, bool) {
	if key == "" || c.Keeper == nil || string(c.recallSealed(cleanKey(key), revision)) != revision {
		return sandbox.Decision{}, false
	}
	return sandbox.Decision{Verdict: sandbox.Allow, Level: sandbox.Safe, PolicyRevision: revision, Findings: []sandbox.Finding{}}, true
}

// keyOf is the cache's key of a request.
func keyOf(revision string, r Request) cacheKey {
	k := cacheKey{revision: revision, lang: facts.ParseLang(r.Language), digest: sha256.Sum256(r.Code), file: r.File, writable: strings.Join(r.Writable, "\n"), link: r.Link}
	if r.Start.Known || len(r.Start.Modules) > 0 {
		k.start = exactStart(r.Start)
	}
	return k
}

// StartKey names a start by every byte of it: two that differ have two names.
func StartKey(s Start) string {
	sum := exactStart(s)
	return hex.EncodeToString(sum[:])
}

// exactStart names a start by every byte of it: JSON, which has all there is, has
// one character for all bytes that are no text.
func exactStart(s Start) [32]byte {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(s)                                     // of texts and lists, which never fails
	word := func(t string) { _, _ = fmt.Fprintf(h, "%d:%s", len(t), t) } // a hash never fails
	var value func(v Given)
	value = func(v Given) {
		for _, list := range [][]string{v.Alts, v.From, {v.Type, v.Prefix, v.Suffix, v.Func}} {
			_, _ = fmt.Fprintf(h, "%d,%t\n", len(list), v.Open)
			for _, t := range list {
				word(t)
			}
		}
		for _, list := range [][]Given{v.Items, v.Recv} {
			_, _ = fmt.Fprintf(h, "%d,%t\n", len(list), list == nil)
			for _, it := range list {
				value(it)
			}
		}
		_, _ = fmt.Fprintf(h, "%d\n", len(v.Fields))
		for _, name := range sortedKeys(v.Fields) {
			word(name)
			value(v.Fields[name])
		}
	}
	word(s.Name)
	if s.Zero != nil {
		value(*s.Zero)
	}
	_, _ = fmt.Fprintf(h, "%t %d\n", s.Zero != nil, len(s.Args))
	for _, v := range s.Args {
		value(v)
	}
	for _, name := range sortedKeys(s.Env) {
		word(name)
		value(s.Env[name])
	}
	for _, texts := range []map[string]string{s.Files, s.Modules, s.Links} {
		_, _ = fmt.Fprintf(h, "%d\n", len(texts))
		for _, name := range sortedKeys(texts) {
			word(name)
			word(texts[name])
		}
	}
	return [32]byte(h.Sum(nil))
}

// Deferred is a policy that is loaded once something was not decided before: a
// process that runs what another one has judged needs neither rules nor scanner.
// It is safe for concurrent use.
type Deferred struct {
	c        Config
	load     func(ctx context.Context) (*Policy, error)
	revision string

	mu     sync.Mutex
	loaded bool
	p      *Policy
	err    error
}

// Defer reads the rules and data of a Config, for their revision, and loads
// nothing. load loads a policy of the same Config. Errors: Invalid.
func Defer(c Config, load func(ctx context.Context) (*Policy, error)) (*Deferred, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	revision, err := revisionOf(c)
	if err != nil {
		return nil, err
	}
	return &Deferred{c: c, load: load, revision: revision}, nil
}

// get loads the policy, once. The first caller's context does not end the
// loading for the others.
func (d *Deferred) get(ctx context.Context) (*Policy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.loaded {
		d.loaded = true
		d.p, d.err = d.load(context.WithoutCancel(ctx))
		if d.err == nil && d.p.Revision() != d.revision {
			d.err = sandbox.Errorf(sandbox.Conflict, "the rules changed while they were read").WithHint("try again")
		}
	}
	return d.p, d.err
}

// Err says why the policy could not be loaded; nil also before that was needed.
func (d *Deferred) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Revision is [Policy.Revision].
func (d *Deferred) Revision() string { return d.revision }

// Examine is [Policy.Examine]. Where the policy cannot be loaded it refuses, and
// Err says why.
func (d *Deferred) Examine(ctx context.Context, r Request) (sandbox.Decision, []Ref) {
	if len(r.Context) == 0 && r.Language != Dockerfile && !d.isLoaded() {
		if dec, refs, ok := d.c.recall(keyOf(d.revision, r)); ok {
			return dec, refs
		}
	}
	p, err := d.get(ctx)
	if err != nil {
		return refusal(d.revision, err.Error()), nil
	}
	return p.Examine(ctx, r)
}

// isLoaded: the policy's own cache, in memory, goes before.
func (d *Deferred) isLoaded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loaded
}

// DecideContext is [Policy.DecideContext], as Examine is [Policy.Examine].
func (d *Deferred) DecideContext(ctx context.Context, key string, about map[string]any) sandbox.Decision {
	if !d.isLoaded() {
		if dec, ok := d.c.recallClean(key, d.revision); ok {
			return dec
		}
	}
	p, err := d.get(ctx)
	if err != nil {
		return refusal(d.revision, err.Error())
	}
	return p.DecideContext(ctx, key, about)
}

// Folder keeps decisions as files of a folder that nobody but its user may
// write. It makes the folder at the first Put, and forgets all where it has
// grown too large. Close waits for what is still being written.
type Folder struct {
	dir     string
	writing sync.WaitGroup
}

// NewFolder keeps decisions in dir.
func NewFolder(dir string) *Folder { return &Folder{dir: dir} }

// Bounds of a [Folder]: its files, one of them, and all of them.
const (
	mostKept      = 4096
	mostKeptBytes = 1 << 20
	mostKeptAll   = 64 << 20
)

// Get implements [Keeper].
func (f *Folder) Get(key string) ([]byte, bool) {
	b, err := os.ReadFile(filepath.Join(f.dir, key))
	return b, err == nil
}

// Put implements [Keeper]. It does not wait, and what cannot be written is not
// kept.
func (f *Folder) Put(key string, value []byte) {
	if len(value) > mostKeptBytes {
		return
	}
	f.writing.Go(func() {
		if os.MkdirAll(f.dir, 0o700) != nil {
			return
		}
		if key[:2] == "00" { // now and then
			if f.full() {
				_ = os.RemoveAll(f.dir) // they are decided anew
				return
			}
		}
		temp := filepath.Join(f.dir, ".new-"+string(sandbox.NewID()))
		if os.WriteFile(temp, value, 0o600) != nil || os.Rename(temp, filepath.Join(f.dir, key)) != nil {
			_ = os.Remove(temp) // it is not kept, which is no failure
		}
	})
}

// full reports whether a folder has grown too large.
func (f *Folder) full() bool {
	list, err := os.ReadDir(f.dir)
	if err != nil || len(list) > mostKept {
		return err == nil
	}
	var size int64
	for _, e := range list {
		if info, err := e.Info(); err == nil { // one that went takes nothing
			size += info.Size()
		}
	}
	return size > mostKeptAll
}

// Later calls make, which may Put, while the caller goes on.
func (f *Folder) Later(make func()) { f.writing.Go(make) }

// Close implements [io.Closer]. It never fails.
func (f *Folder) Close() error {
	f.writing.Wait()
	return nil
}
