package policy

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/internal/onedoc"
	"github.com/caisson-dev/caisson/sandbox"
)

// dataKeys are what the files of data that rules see consist of. Anything else
// is refused: a threshold under a misspelt name would not hold, and nobody
// would know.
var dataKeys = map[string][]string{
	"settings.yaml":  {"thresholds", "severity", "settings"},
	"blacklist.yaml": {"blacklist"},
	"lookups.yaml":   {"lookups"},
	"waivers.yaml":   {"waivers"},
	"contained.yaml": {"contained"},
}

// readData reads the YAML that rules see as data, and that Go sees as settings
// and waivers, and adds it to the digest; either may be nil. The scanner's tables
// are no part of it but count towards the revision.
func readData(c Config, into map[string]any, digest hash.Hash) error {
	var known []string // what may stand for a shipped file
	err := fs.WalkDir(c.Rules, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		if !strings.HasPrefix(name, "data/apis/") {
			known = append(known, path.Base(name))
		}
		keys, seen := dataKeys[path.Base(name)]
		if digest == nil && !seen {
			return nil
		}
		from := c.Rules
		if c.Data != nil {
			if _, err := fs.Stat(c.Data, path.Base(name)); err == nil && !strings.HasPrefix(name, "data/apis/") {
				from, name = c.Data, path.Base(name)
			}
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		add(digest, path.Base(name), text)
		if into == nil || !seen {
			return nil
		}
		var doc map[string]any
		if err := onedoc.Decode(text, &doc); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for k, v := range doc {
			if !slices.Contains(keys, k) {
				return fmt.Errorf("%s: there is no %q in it, but %s", name, k, strings.Join(keys, ", "))
			}
			into[k] = v
		}
		return nil
	})
	if err == nil && c.Data != nil {
		err = checkData(c.Data, known)
	}
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "read policy data: %w", err)
	}
	return nil
}

// revisionOf is the revision that a configuration has once it is loaded.
func revisionOf(c Config) (string, error) {
	if c.lasts() {
		once, _ := lasting.LoadOrStore(c.Rules, sync.OnceValues(func() (string, error) { return revisionNow(c) }))
		return once.(func() (string, error))()
	}
	return revisionNow(c)
}

// lasting are the revisions of rules that are part of a program. Two goroutines
// ask for them when a process starts.
var lasting sync.Map

// lasts reports that all of a configuration is part of the program, so that it
// is the same whenever it is read.
func (c *Config) lasts() bool {
	_, embedded := c.Rules.(embed.FS)
	return embedded && c.Data == nil && len(c.User) == 0
}

func revisionNow(c Config) (string, error) {
	sum := sha256.New()
	if err := readData(c, nil, sum); err != nil {
		return "", err
	}
	if _, err := sources(c.Rules, "", sum); err != nil {
		return "", err
	}
	for _, name := range sortedKeys(c.User) {
		user, err := userSources(c.User[name], name)
		if err != nil {
			return "", err
		}
		for _, f := range user {
			add(sum, name+"/"+f.name, []byte(f.text))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// add adds a file to a digest, if there is one.
func add(digest hash.Hash, name string, text []byte) {
	if digest != nil {
		fmt.Fprintf(digest, "%s %d\n", name, len(text))
		_, _ = digest.Write(text) // a hash never fails
	}
}

func (s *snapshot) readSettings(data map[string]any) error {
	if err := decodeData(data, &s.settings, "thresholds", "severity", "contained"); err != nil {
		return err
	}
	for wall := range s.settings.Contained {
		if !slices.Contains(sandbox.Walls, wall) {
			return sandbox.Errorf(sandbox.Invalid, "contained: no sandbox has %q", wall).WithHint("it may have: %s", strings.Join(names(sandbox.Walls), ", "))
		}
	}
	if c := s.settings.Thresholds.Contained; c != "" && c != string(sandbox.Ask) && c != string(sandbox.Allow) {
		return sandbox.Errorf(sandbox.Invalid, "settings: thresholds.contained is %q", c).WithHint("make it allow or ask")
	}
	var err error
	if s.settings.Ask, err = sandbox.ParseLevel(s.settings.Thresholds.Ask); err != nil {
		return sandbox.Errorf(sandbox.Invalid, "settings: thresholds.ask: %w", err)
	}
	if t := s.settings.Thresholds.Deny; t != "" {
		if s.settings.Deny, err = sandbox.ParseLevel(t); err != nil {
			return sandbox.Errorf(sandbox.Invalid, "settings: thresholds.deny: %w", err)
		}
	}
	var w struct {
		Waivers []Waiver `yaml:"waivers"`
	}
	if err := decodeData(data, &w, "waivers"); err != nil {
		return err
	}
	s.waivers = w.Waivers
	for i, v := range s.waivers {
		if v.Rule == "" || v.Expires.IsZero() {
			return sandbox.Errorf(sandbox.Invalid, "waiver %d: rule, digest and expires are required", i+1)
		}
		if sum, err := hex.DecodeString(v.Digest); err != nil || len(sum) != sha256.Size || v.Digest != strings.ToLower(v.Digest) {
			return sandbox.Errorf(sandbox.Invalid, "waiver %d: digest is what sha256sum prints of the source, 64 hexadecimal digits, not %q", i+1, v.Digest)
		}
	}
	return nil
}

// decodeData reads some keys of the data into a struct that has all of what may
// stand there.
func decodeData(data map[string]any, into any, keys ...string) error {
	for _, key := range keys {
		v, ok := data[key]
		if !ok {
			continue
		}
		text, err := yaml.Marshal(map[string]any{key: v})
		if err != nil {
			return sandbox.Errorf(sandbox.Internal, "%s: %w", key, err)
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(into); err != nil {
			return sandbox.Errorf(sandbox.Invalid, "%s: %w", key, err)
		}
	}
	return nil
}

// Waiver lets one rule pass for one source until it expires.
type Waiver struct {
	Rule    string    `yaml:"rule" json:"rule"`
	Digest  string    `yaml:"digest" json:"digest"` // sha256 of the source, in hex
	Expires time.Time `yaml:"expires" json:"expires"`
	Reason  string    `yaml:"reason" json:"reason,omitempty"`
	By      string    `yaml:"by" json:"by,omitempty"`
}

func (s *snapshot) waived(rule, digest string, now time.Time) bool {
	for _, w := range s.waivers {
		if w.Rule == rule && w.Digest == digest && now.Before(w.Expires) {
			return true
		}
	}
	return false
}

func names(walls []sandbox.Wall) []string {
	out := make([]string, len(walls))
	for i, w := range walls {
		out[i] = string(w)
	}
	return out
}
