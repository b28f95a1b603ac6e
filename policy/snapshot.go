package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

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
	// What the catalogue is read from (texts, or where those were not needed from
	// and users), and that itself once it was.
	from     fs.FS
	users    map[string]fs.FS
	texts    []source
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
		// Contained is "ask" where a wall makes no question less; "" is "allow".
		Contained string `yaml:"contained"`
	} `yaml:"thresholds"`
	// Contained are the rules whose findings a wall of the sandbox stops.
	Contained map[sandbox.Wall][]string `yaml:"contained"`
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
	s := &snapshot{caps: capabilities(), from: c.Rules, users: c.User, data: map[string]any{}}
	revision, p := c.recallLasting()
	sum := sha256.New()
	var digest hash.Hash // of rules whose revision is not known
	if p == nil {
		digest = sum
	}
	if err := readData(c, s.data, digest); err != nil {
		return nil, err
	}
	if err := s.readSettings(s.data); err != nil {
		return nil, err
	}
	if p != nil {
		s.revision = revision
		s.use(p, nil)
		return s, nil
	}
	var err error
	if s.texts, err = allSources(c.Rules, c.User, sum); err != nil {
		return nil, err
	}
	s.revision = hex.EncodeToString(sum.Sum(nil))[:16]
	if p := c.recallPrepared(s.revision); p != nil {
		s.use(p, nil)
		return s, nil
	}
	return s, s.compileAll(ctx, c, s.texts)
}

// allSources reads the shipped rules and the users', and adds them to a digest
// that is not nil.
func allSources(shipped fs.FS, users map[string]fs.FS, digest hash.Hash) ([]source, error) {
	all, err := sources(shipped, "", digest)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(users) {
		user, err := userSources(users[name], name)
		if err != nil {
			return nil, err
		}
		for _, f := range user {
			add(digest, name+"/"+f.name, []byte(f.text))
		}
		all = append(all, user...)
	}
	return all, nil
}

// compileAll makes the query of all rules, or of a process that judges once what
// it takes to compile some.
func (s *snapshot) compileAll(ctx context.Context, c Config, all []source) error {
	modules, err := parse(all, s.caps, false)
	if err != nil {
		return err
	}
	s.parts = partsOf(modules)
	if !c.Lazy || len(s.settings.Severity)+len(s.waivers)+len(c.User) > 0 {
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// source is one file of rules.
type source struct{ bundle, name, text string }

// sources reads all .rego files of a folder but the tests, and adds them to a
// digest that is not nil.
func sources(fsys fs.FS, bundle string, digest hash.Hash) ([]source, error) {
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
		add(digest, bundle+"/"+name, text)
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
	m, err := ast.ParseModuleWithOpts(f.name, f.text, ast.ParserOptions{ProcessAnnotation: annotations || f.bundle != "", Capabilities: caps, RegoVersion: ast.RegoV1})
	if err != nil || f.bundle == "" {
		return m, err
	}
	want := append(slices.Clone(userPackages), ast.StringTerm(f.bundle))
	if !m.Package.Path.Equal(want) {
		return nil, fmt.Errorf("%s: %s, must be package %s", f.name, m.Package, strings.TrimPrefix(want.String(), "data."))
	}
	if err := checkUser(m); err != nil || annotations {
		return m, err
	}
	m.Annotations = nil // they were read for the check alone
	for _, r := range m.Rules {
		r.Annotations = nil
	}
	return m, nil
}
