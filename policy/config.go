package policy

import (
	"context"
	"io/fs"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/sandbox"
)

// Scanner turns source text into facts. An error means that there are none,
// for whatever reason; the caller then treats the text as opaque.
type Scanner interface {
	Scan(ctx context.Context, r facts.Request) (*facts.Document, error)
}

// Request is one text to be judged.
type Request struct {
	// Language as users name it: python, bash, sh, javascript, node, typescript.
	Language string
	Code     []byte
	// File names the text in findings; "" is the run's own code.
	File string
	// Owner keeps the texts of different owners out of one scanner process.
	Owner string
	// Start is how it is started, as far as that is known.
	Start Start
	// Writable are the folders that programs can write in where it runs; nil is
	// those of an image that declares no volumes.
	Writable []string
	// Link is [sandbox.Image.Link] of where it runs.
	Link string
	// Context is what rules may know beside the text: "plan", a
	// [sandbox.Surroundings]. It becomes input.ctx, and nothing is kept with it.
	Context map[string]any
}

// Config says where rules and data come from.
type Config struct {
	// Rules has the shipped rules and data, as policies.FS. Required.
	Rules fs.FS
	// Data, where not nil, has YAML files that replace those of Rules/data by
	// name: hosts.yaml, settings.yaml, blacklist.yaml, lookups.yaml, waivers.yaml.
	Data fs.FS
	// User are the users' own rules, by bundle name.
	User map[string]fs.FS
	// Lazy is for a process that judges once: it compiles those rules alone that
	// can say something about the facts it has, and leaves annotations unread until
	// something is found, which saves it two thirds of its start. Where either
	// fails then, it is refused. Users' rules are all compiled the first time.
	Lazy bool
	// Scanner gives the facts. nil makes every decision a refusal.
	Scanner Scanner
	// Keeper, where not nil, keeps decisions for other processes. Programs names
	// the builds of caisson and its scanner that they are of: others decide
	// anew.
	Keeper   Keeper
	Programs string
	// Timeout bounds one evaluation that has a processor to itself; 1 s where 0.
	// One takes about one millisecond. What the scan of a text took is missing in
	// it, but for half of it at least.
	Timeout time.Duration
	// ScanTimeout bounds one scan that has a processor to itself; 800 ms where 0.
	//
	// What others keep a processor from may take [facts.Patience] times as long,
	// by the clock: what is decided must not depend on what else a machine does.
	ScanTimeout time.Duration
	// CacheSize is the number of decisions kept; 4096 where 0, none below.
	CacheSize int
	// Now is the clock; time.Now where nil.
	Now func() time.Time
}

// after has what is left to an evaluation when its scan has taken that long, so
// that both together are over soon.
func (c Config) after(scan time.Duration) Config {
	c.Timeout = max(c.Timeout-scan, c.Timeout/2)
	return c
}

func (c Config) withDefaults() (Config, error) {
	if c.Rules == nil {
		return c, sandbox.Errorf(sandbox.Invalid, "policy: no rules given")
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Second
	}
	if c.ScanTimeout <= 0 {
		c.ScanTimeout = 800 * time.Millisecond
	}
	if c.CacheSize == 0 {
		c.CacheSize = 4096
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
