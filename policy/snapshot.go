package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

const (
	query        = "data.caisson.main.findings"
	maxModule    = 256 << 10
	maxUserFiles = 200
)

// snapshot is one prepared rule set with its data. It is never altered.
type snapshot struct {
	revision string
	query    rego.PreparedEvalQuery
	selected *selected // in place of query, where rules were kept
	settings settings
	waivers  []Waiver
	// What the catalogue is read from, and that itself once it was.
	shipped  []source
	caps     *ast.Capabilities
	data     map[string]any
	once     sync.Once
	rules    map[string]Rule
	rulesErr error
	kept     json.RawMessage // the catalogue, where that was kept
	// parts of the input that some rule looks at; "" is all of them.
	parts map[string]bool
	// needs are what rules need to hold, and says which of them each rule that
	// can give a finding needs.
	needs []need
	says  [][]int
}

// uses reports whether a rule looks at a part of the input.
func (s *snapshot) uses(part string) bool { return s.parts[part] || s.parts[""] }

// tellsTime reports whether a rule looks at the time, so that no decision lasts.
func (s *snapshot) tellsTime() bool { return s.uses("now") }

// partsOf finds the parts of the input that modules refer to.
func partsOf(modules map[string]*ast.Module) map[string]bool {
	parts := map[string]bool{}
	for _, m := range modules {
		ast.WalkRefs(m, func(r ast.Ref) bool {
			if !r.HasPrefix(ast.InputRootRef) {
				return false
			}
			part := ast.String("")
			if len(r) > 1 {
				part, _ = r[1].Value.(ast.String)
			}
			parts[string(part)] = true
			return false
		})
	}
	return parts
}

// settings are data/settings.yaml, as far as Go reads them.
type settings struct {
	Ask  sandbox.Level `yaml:"-"`
	Deny sandbox.Level `yaml:"-"`

	Thresholds struct {
		Ask  string `yaml:"ask"`
		Deny string `yaml:"deny"`
	} `yaml:"thresholds"`
	// Severity replaces the severity of rules, by id; a rule of the blacklist
	// keeps its own.
	Severity map[string]string `yaml:"severity"`
}

// capabilities are OPA's without network, clock, randomness, files and
// reflection on the engine itself.
func capabilities() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion()
	c.AllowNet = []string{}
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		switch b.Name {
		case "rego.parse_module", "trace", "print", "providers.aws.sign_req", "opa.runtime":
			return true
		}
		return b.Nondeterministic
	})
	return c
}

// loadSnapshot reads, compiles and prepares all of a configuration.
func loadSnapshot(ctx context.Context, c Config) (*snapshot, error) {
	defer relaxed()()
	sum := sha256.New()
	data, err := loadData(c, sum.Write)
	if err != nil {
		return nil, err
	}
	s := &snapshot{caps: capabilities(), data: data}
	if err := s.readSettings(data); err != nil {
		return nil, err
	}
	if s.shipped, err = sources(c.Rules, "", sum.Write); err != nil {
		return nil, err
	}
	all := slices.Clone(s.shipped)
	for _, name := range sortedKeys(c.User) {
		user, err := sources(c.User[name], name, sum.Write)
		if err != nil {
			return nil, err
		}
		if len(user) > maxUserFiles {
			return nil, sandbox.Errorf(sandbox.Invalid, "user rules %s: more than %d files", name, maxUserFiles)
		}
		all = append(all, user...)
	}
	s.revision = hex.EncodeToString(sum.Sum(nil))[:16]
	if p := c.recallPrepared(s.revision); p != nil {
		s.parts, s.kept = p.Parts, p.Catalogue
		s.use(p, nil)
		return s, nil
	}
	return s, s.compileAll(ctx, c, all)
}

// compileAll makes the query of all rules, or of a process that judges once what
// it takes to compile some.
func (s *snapshot) compileAll(ctx context.Context, c Config, all []source) error {
	modules, err := parse(all, s.caps, false)
	if err != nil {
		return err
	}
	s.parts = partsOf(modules)
	if !c.Lazy || len(s.settings.Severity)+len(s.waivers) > 0 {
		if _, err := s.catalogued(); err != nil {
			return err
		}
	}
	if c.Lazy && len(c.User) == 0 {
		s.take(c, all, modules)
		return nil
	}
	var keep func()
	if c.Lazy {
		keep = s.keepUsers(c, all, modules)
	}
	s.needs, s.says = guard(modules)
	comp, err := compile(modules, s.caps, true)
	if err != nil {
		return err
	}
	if keep != nil {
		keep()
	}
	s.query, err = s.prepareQuery(ctx, comp)
	return err
}

func compile(modules map[string]*ast.Module, caps *ast.Capabilities, strict bool) (*ast.Compiler, error) {
	comp := ast.NewCompiler().WithCapabilities(caps).WithStrict(strict)
	if comp.Compile(modules); comp.Failed() {
		return nil, sandbox.Errorf(sandbox.Invalid, "compile rules: %w", comp.Errors)
	}
	return comp, nil
}

func (s *snapshot) prepareQuery(ctx context.Context, comp *ast.Compiler) (rego.PreparedEvalQuery, error) {
	store := inmem.NewFromObjectWithOpts(s.data, inmem.OptReturnASTValuesOnRead(true))
	q, err := rego.New(rego.Query(query), rego.Compiler(comp), rego.Store(store), rego.StrictBuiltinErrors(true)).PrepareForEval(ctx)
	if err != nil {
		return q, sandbox.Errorf(sandbox.Invalid, "prepare rules: %w", err)
	}
	return q, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// loadData reads the YAML that rules see as data, and that Go sees as settings
// and waivers. The scanner's tables are no part of it but count towards the
// revision.
func loadData(c Config, digest func([]byte) (int, error)) (map[string]any, error) {
	data := map[string]any{}
	return data, readData(c, data, digest)
}

// dataKeys are what the files of data that rules see consist of. Anything else
// is refused: a threshold under a misspelt name would not hold, and nobody
// would know.
var dataKeys = map[string][]string{
	"settings.yaml":  {"thresholds", "severity", "settings"},
	"blacklist.yaml": {"blacklist"},
	"waivers.yaml":   {"waivers"},
}

// readData is loadData; without into it reads for the digest alone.
func readData(c Config, into map[string]any, digest func([]byte) (int, error)) error {
	err := fs.WalkDir(c.Rules, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" {
			return err
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
		fmt.Fprintf(hashWriter(digest), "%s %d\n", path.Base(name), len(text))
		digest(text) //nolint:errcheck // a hash never fails
		if into == nil {
			return nil
		}
		keys, ok := dataKeys[path.Base(name)]
		if !ok {
			return nil
		}
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
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
	if err != nil {
		return sandbox.Errorf(sandbox.Invalid, "read policy data: %w", err)
	}
	return nil
}

// revisionOf is the revision that a configuration has once it is loaded.
func revisionOf(c Config) (string, error) {
	sum := sha256.New()
	if err := readData(c, nil, sum.Write); err != nil {
		return "", err
	}
	if _, err := sources(c.Rules, "", sum.Write); err != nil {
		return "", err
	}
	for _, name := range sortedKeys(c.User) {
		if _, err := sources(c.User[name], name, sum.Write); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

type hashWriter func([]byte) (int, error)

func (w hashWriter) Write(b []byte) (int, error) { return w(b) }

func (s *snapshot) readSettings(data map[string]any) error {
	if err := decodeData(data, &s.settings, "thresholds", "severity"); err != nil {
		return err
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

// source is one file of rules.
type source struct{ bundle, name, text string }

// sources reads all .rego files of a folder but the tests.
func sources(fsys fs.FS, bundle string, digest func([]byte) (int, error)) ([]source, error) {
	var list []source
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".rego" || strings.HasSuffix(name, "_test.rego") {
			return err
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if len(text) > maxModule {
			return fmt.Errorf("%s: more than %d bytes", name, maxModule)
		}
		fmt.Fprintf(hashWriter(digest), "%s/%s %d\n", bundle, name, len(text))
		digest(text) //nolint:errcheck // a hash never fails
		list = append(list, source{bundle, name, string(text)})
		return nil
	})
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", err)
	}
	return list, nil
}

// parse parses modules, on all cores.
func parse(list []source, caps *ast.Capabilities, annotations bool) (map[string]*ast.Module, error) {
	parsed := make([]*ast.Module, len(list))
	errs := make([]error, len(list))
	var tasks sync.WaitGroup
	for i, src := range list {
		tasks.Go(func() { parsed[i], errs[i] = src.parse(caps, annotations) })
	}
	tasks.Wait()
	modules := make(map[string]*ast.Module, len(list))
	for i, src := range list {
		if errs[i] != nil {
			return nil, sandbox.Errorf(sandbox.Invalid, "read rules: %w", errs[i])
		}
		modules[src.key()] = parsed[i]
	}
	return modules, nil
}

func (f source) key() string {
	if f.bundle == "" {
		return path.Join("rules", f.name)
	}
	return path.Join("user", f.bundle, f.name)
}

// parse reads one module. Files of a user bundle must be in the package
// caisson.user.BUNDLE.
func (f source) parse(caps *ast.Capabilities, annotations bool) (*ast.Module, error) {
	m, err := ast.ParseModuleWithOpts(f.name, f.text, ast.ParserOptions{ProcessAnnotation: annotations, Capabilities: caps, RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, err
	}
	if want := "data.caisson.user." + f.bundle; f.bundle != "" && m.Package.Path.String() != want {
		return nil, fmt.Errorf("%s: package is %s, must be %s", f.name, m.Package.Path, want)
	}
	return m, nil
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
