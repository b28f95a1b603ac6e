package shell_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/shell"
)

// testTables are as much of the real tables as these tests need, so that they
// do not change with the data.
func testTables() *facts.Tables {
	wrapper := facts.Program{Wrapper: true, Assign: true, ValueFlags: []string{"-u", "-n", "-s", "-S"}}
	sh := facts.Program{Interpreter: facts.Shell, CodeFlags: []string{"-c"}, Script: true, StdinCode: true}
	read := facts.Program{Effects: []facts.Effect{{Do: "file", Op: "read", Arg: []string{"*"}}}}
	get := facts.Program{
		ValueFlags: []string{"-o", "-O", "-d", "--data-binary", "-H", "-X", "-w"},
		Effects:    []facts.Effect{{Do: "net", Op: "request", Arg: []string{"1"}, Data: []string{"-d"}}},
	}
	awk := facts.Program{ValueFlags: []string{"-F"}, Runs: []facts.Run{{Operand: 1, Pattern: `system\("([^"]*)"\)`}}}
	t := &facts.Tables{
		Home: "/home/user", Workspace: "/workspace", Cwd: "/workspace",
		Paths: []facts.PathRule{
			{Class: "root", Exact: []string{"/"}},
			{Class: "credential", Exact: []string{"/etc/shadow"}, Under: []string{"~/.ssh"}},
			{Class: "system_config", Under: []string{"/etc"}},
			{Class: "device", Match: []string{"/dev/sd*"}},
			{Class: "tmp", Under: []string{"/tmp"}},
		},
		EnvNames: map[string][]string{"loader": {"LD_*"}, "startup": {"BASH_ENV", "PROMPT_COMMAND"}, "secret": {"*_TOKEN"}},
		Programs: facts.RowsOf(map[string]facts.Program{
			"rm":   {Twins: map[string]string{"recursive": "r", "force": "f"}, Effects: []facts.Effect{{Do: "file", Op: "delete", Arg: []string{"*"}}}},
			"find": {Long: true, Runs: []facts.Run{{Flag: "-exec", Until: []string{";", "+"}}}, Effects: []facts.Effect{{Do: "file", Op: "list", Arg: []string{"1"}}}},
			"env":  wrapper, "sudo": wrapper, "nohup": {Wrapper: true}, "nice": wrapper, "setsid": {Wrapper: true},
			"timeout": {Wrapper: true, Skip: 1, ValueFlags: []string{"-s", "-k"}}, "xargs": {Wrapper: true, Stdin: true, ValueFlags: []string{"-I", "-n"}},
			"exec": {Wrapper: true}, "command": {Wrapper: true}, "builtin": {Wrapper: true}, "time": {Wrapper: true}, "busybox": {Applet: true},
			"sh": sh, "bash": sh, "dash": sh, "ksh": sh, "zsh": sh, "source": {Interpreter: facts.Shell, Script: true}, ".": {Interpreter: facts.Shell, Script: true},
			"python3": {Interpreter: facts.Python, CodeFlags: []string{"-c"}, Script: true, StdinCode: true},
			"perl":    {Interpreter: "perl", CodeFlags: []string{"-e"}, Script: true, StdinCode: true},
			"cat":     read, "head": read, "ls": read, "dd": {Effects: []facts.Effect{{Do: "file", Op: "write", Arg: []string{"of="}}}},
			"curl": get, "wget": get, "nc": {Effects: []facts.Effect{{Do: "net", Op: "connect", Arg: []string{"1"}, Port: []string{"2"}, Data: []string{"stdin"}}}},
			"tar": {Runs: []facts.Run{{Flag: "--checkpoint-action", Prefix: "exec="}}}, "awk": awk, "cp": {}, "mkfs.ext4": {},
		}),
	}
	return t
}

type pythonStub struct{ code *[]string }

func (p pythonStub) Extract(_ context.Context, src []byte, b *facts.Builder) error {
	b.Node()
	*p.code = append(*p.code, string(src))
	return nil
}

// scan gives the facts of a script, and the Python that it would run.
func scan(tb testing.TB, src string) (*facts.Document, []string) {
	tb.Helper()
	var python []string
	t := testTables()
	d := facts.Dispatcher{facts.Shell: shell.New(t), facts.Python: pythonStub{&python}}
	return facts.Scan(context.Background(), t, d, facts.Limits{}, facts.Shell, []byte(src)), python
}
