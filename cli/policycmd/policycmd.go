// Package policycmd is `caisson policy`: check programs, list and explain
// rules, test rules. It reads flags, asks a [Policy], and prints; it judges
// nothing itself.
package policycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/sandbox"
)

// Policy is what these commands ask.
type Policy interface {
	// Check judges one text for a sandbox; file names it in findings.
	Check(ctx context.Context, language string, code []byte, file string, in sandbox.Surroundings) sandbox.Decision
	// Rules lists all rules by id.
	Rules() []sandbox.Rule
	// Test runs the Rego tests and the examples of a folder of rules, and
	// reports how many passed and what failed.
	Test(ctx context.Context, dir string) (passed int, failures []string, err error)
}

// Streams are the command's own.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit is an exit code as an error: 1 where something is not allowed, 2 for
// wrong usage. What there was to say has been printed.
type Exit int

// Error says the code.
func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// ExitCode is the code.
func (e Exit) ExitCode() int { return int(e) }

// NewCmd makes the command. open is called at most once, by a subcommand that
// needs the policy; who made it closes it.
func NewCmd(io Streams, open func(ctx context.Context) (Policy, error)) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "Say what the policy thinks of a program, and why", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newCheck(io, open), newRules(io, open), newExplain(io, open), newTest(io, open))
	return cmd
}

// usage is for a command line that cannot be meant.
func usage(format string, args ...any) *sandbox.Error {
	return sandbox.Errorf(sandbox.Invalid, format, args...)
}

// checkOptions are the flags of check.
type checkOptions struct {
	io                 Streams
	open               func(ctx context.Context) (Policy, error)
	language, code     string
	hasCode            bool
	json, sarif, batch bool
	files              []string
	network            string
	env                []string
}

// surroundings are those of the sandbox that is judged for: the default one, or
// what the flags make of it.
func (o *checkOptions) surroundings() sandbox.Surroundings {
	return sandbox.Surroundings{
		Network: sandbox.Network{Mode: sandbox.NetworkMode(o.network)}, Writable: sandbox.Writable(nil), Workspace: sandbox.WorkspaceTmpfs, Limits: sandbox.DefaultLimits,
		Walls: slices.DeleteFunc(slices.Clone(sandbox.Walls), func(w sandbox.Wall) bool {
			return w == sandbox.WallNetwork && o.network != "none" || w == sandbox.WallEgress && o.network != "allow" || w == sandbox.WallEnvironment && len(o.env) > 0
		}),
	}
}

func newCheck(io Streams, open func(ctx context.Context) (Policy, error)) *cobra.Command {
	o := &checkOptions{io: io, open: open}
	cmd := &cobra.Command{Use: "check [-l LANG] [-c CODE | FILE…]", Short: "Judge programs without running them",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files, o.hasCode = args, cmd.Flags().Changed("code")
			return o.run(cmd.Context())
		}}
	f := cmd.Flags()
	f.StringVarP(&o.language, "language", "l", "", "language: python, javascript, typescript, bash, dockerfile (default: by suffix or #!)")
	f.StringVarP(&o.code, "code", "c", "", "the program itself")
	f.BoolVar(&o.json, "json", false, "print the decision as JSON, one object a program")
	f.BoolVar(&o.sarif, "sarif", false, "print the findings as SARIF 2.1")
	f.StringVar(&o.network, "network", "none", "judge for a sandbox with this network")
	f.StringArrayVar(&o.env, "env", nil, "judge for a sandbox that is given `K=V`")
	f.BoolVar(&o.batch, "batch", false, "read JSON lines {id, language, code}, write JSON lines in order")
	return cmd
}

// program is one text to be judged.
type program struct {
	file, language string
	code           []byte
	decision       sandbox.Decision
}

func (o *checkOptions) run(ctx context.Context) error {
	switch {
	case o.json && o.sarif:
		return usage("both --json and --sarif").WithHint("give one of them")
	case o.hasCode && len(o.files) > 0:
		return usage("both -c and %s", o.files[0]).WithHint("give one of -c CODE and FILE")
	case o.batch && (o.hasCode || len(o.files) > 1 || o.sarif):
		return usage("--batch beside other programs, or --sarif").WithHint("it reads standard input or one file, and nothing else")
	case slices.ContainsFunc(o.env, func(kv string) bool { return kv == "" || kv[0] == '=' }):
		return usage("--env without the name of a variable").WithHint("write KEY=VALUE")
	}
	if o.batch {
		p, err := o.open(ctx)
		if err != nil {
			return err
		}
		return o.runBatch(ctx, p)
	}
	programs, err := o.read()
	if err != nil {
		return err
	}
	p, err := o.open(ctx)
	if err != nil {
		return err
	}
	allowed := true
	for i := range programs {
		one := &programs[i]
		one.decision = p.Check(ctx, one.language, one.code, one.file, o.surroundings())
		allowed = allowed && one.decision.Verdict.Permits()
	}
	if err := o.print(p, programs); err != nil {
		return err
	}
	if !allowed {
		return Exit(1)
	}
	return nil
}

func (o *checkOptions) print(p Policy, programs []program) error {
	if o.sarif {
		return writeSARIF(o.io.Out, programs, p.Rules())
	}
	for _, one := range programs {
		var err error
		if o.json {
			err = writeJSON(o.io.Out, one.decision)
		} else {
			err = writeText(o.io.Out, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read gathers the programs; wrong usage is found before anything is judged.
func (o *checkOptions) read() ([]program, error) {
	if o.hasCode {
		lang := o.language
		if lang == "" {
			return nil, usage("code without a language").WithHint("name it with -l, such as -l python")
		}
		if !known(lang) {
			return nil, usage("unknown language %q", lang).WithHint("see: caisson policy check --help")
		}
		return []program{{language: lang, code: []byte(o.code)}}, nil
	}
	files := o.files
	if len(files) == 0 {
		files = []string{"-"}
	}
	var out []program
	for _, name := range files {
		code, err := o.readFile(name)
		if err != nil {
			return nil, usage("%w", err).WithHint("check the path; it is looked for on this host")
		}
		lang := o.language
		if lang == "" {
			lang = LanguageOf(name, code)
		}
		if !known(lang) {
			return nil, usage("%s: the language is not known", name).WithHint("name it with -l, such as -l python")
		}
		if name == "-" {
			name = ""
		}
		out = append(out, program{file: name, language: lang, code: code})
	}
	return out, nil
}

// mostRead bounds what is read of a file: a little more than is scanned, so
// that the policy sees that it is too long.
const mostRead = 1 << 20

func (o *checkOptions) readFile(name string) ([]byte, error) {
	in := o.io.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	if in == nil {
		return nil, errors.New("no standard input")
	}
	return io.ReadAll(io.LimitReader(in, mostRead))
}

var suffixes = map[string]string{".py": "python", ".pyw": "python", ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
	".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".sh": "bash", ".bash": "bash"}

func known(lang string) bool {
	switch strings.ToLower(lang) {
	case "python", "python3", "py", "javascript", "js", "node", "typescript", "ts", "bash", "sh", "shell", "dash", "zsh", "ksh", "dockerfile":
		return true
	}
	return false
}

// LanguageOf tells a program's language by its name, or by its first line where
// that begins with #!. It is "" where neither says anything.
func LanguageOf(name string, code []byte) string {
	if l := suffixes[strings.ToLower(filepath.Ext(name))]; l != "" {
		return l
	}
	if base := strings.ToLower(filepath.Base(name)); base == "dockerfile" || strings.HasPrefix(base, "dockerfile.") || strings.HasSuffix(base, ".dockerfile") {
		return "dockerfile"
	}
	first, _, _ := strings.Cut(string(code[:min(len(code), 128)]), "\n")
	if !strings.HasPrefix(first, "#!") {
		return ""
	}
	for _, w := range strings.FieldsFunc(first[2:], func(r rune) bool { return r == '/' || r == ' ' || r == '\t' }) {
		if w = strings.TrimRight(w, "0123456789."); known(w) {
			return w
		}
	}
	return ""
}
