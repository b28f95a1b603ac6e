package cli

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// namesPatience bounds what a shell waits for names: they are a help, and none
// is no failure.
const namesPatience = 2 * time.Second

// names lists what an argument may be, those before it given.
type names func(ctx context.Context, cfg Config, before []string, begun string) []string

// asked are names that caisson is asked for, in one role.
func asked[Role any](list func(ctx context.Context, svc Role, before []string, begun string) []string) names {
	return func(ctx context.Context, cfg Config, before []string, begun string) []string {
		svc, err := open[Role](ctx, cfg)
		if err != nil {
			return nil // as in complete
		}
		return list(ctx, svc, before, begun)
	}
}

// completeArgs has a shell complete arguments, each by its names; the last ones
// hold for all that follow. nil is a file of the host.
func completeArgs(cfg Config, cmd *cobra.Command, each ...names) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		list := each[min(len(args), len(each)-1)]
		if list == nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cfg, cmd, list, args, begun)
	}
	return cmd
}

func complete(cfg Config, cmd *cobra.Command, list names, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), namesPatience)
	defer cancel()
	found := slices.DeleteFunc(list(ctx, cfg, args, begun), func(name string) bool { return !strings.HasPrefix(name, begun) })
	directive := cobra.ShellCompDirectiveNoFileComp
	if slices.ContainsFunc(found, func(name string) bool { return strings.HasSuffix(name, "/") }) {
		directive |= cobra.ShellCompDirectiveNoSpace // it goes on in the folder
	}
	return found, directive
}

// completeLanguage does so for --language.
func completeLanguage(cfg Config, cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("language", func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return complete(cfg, cmd, asked(languageNames), args, begun)
	}) // fails only for a flag that is not there
}

// completions gives the commands their names.
func completions(cfg Config, root *cobra.Command) {
	sessions, snapshots, execs, entries := asked(sessionsFor), asked(snapshotsOf), asked(execsOf), asked(entriesOf)
	languages, questions := asked(languageNames), asked(questionIDs)
	for line, each := range map[string][]names{
		"session show": {sessions, none}, "session stats": {sessions, none}, "session rm": {sessions}, "session pause": {sessions, none}, "session resume": {sessions, none},
		"session renew": {sessions, none}, "session snapshot": {sessions, none}, "session restore": {sessions, snapshots, none},
		"session fork": {sessions, none}, "exec": {sessions, nil}, "ps": {sessions, none}, "changes": {sessions, none}, "undo": {sessions, none},
		"logs": {sessions, execs, none}, "attach": {sessions, execs, none}, "input": {sessions, execs, none}, "kill": {sessions, execs, none},
		"files ls": {sessions, entries, none}, "files cat": {sessions, entries, none}, "files stat": {sessions, entries, none},
		"files rm": {sessions, entries, none}, "files mv": {sessions, entries, entries, none}, "files mkdir": {sessions, entries, none},
		"files write": {sessions, entries, none}, "files watch": {sessions, entries, none}, "files get": {sessions, entries, nil},
		"files put": {sessions, nil}, "files push": {sessions, nil, entries, none}, "files pull": {sessions, entries, nil},
		"images build": {languages}, "images prewarm": {languages}, "images pin": {languages},
		"approvals show": {questions, none}, "approvals approve": {questions, none}, "approvals deny": {questions, none},
	} {
		cmd, _, err := root.Find(strings.Fields(line))
		if err != nil || cmd == root {
			panic("no command " + line) // of ours: a test runs this
		}
		completeArgs(cfg, cmd, each...)
	}
	for _, line := range []string{"run", "exec", "session create"} {
		if cmd, _, err := root.Find(strings.Fields(line)); err == nil {
			completeLanguage(cfg, cmd)
		}
	}
}

func none(context.Context, Config, []string, string) []string { return nil }

func sessionsFor(ctx context.Context, svc api.Sessions, _ []string, _ string) []string {
	list, _ := sessionNames(ctx, svc) // as in complete
	return list
}

func snapshotsOf(ctx context.Context, svc api.Sessions, before []string, _ string) []string {
	v, _ := svc.Session(ctx, before[0]) // as in complete
	var list []string
	for _, s := range v.Snapshots {
		list = append(list, s.Name, string(s.ID))
	}
	return slices.DeleteFunc(list, func(name string) bool { return name == "" })
}

func execsOf(ctx context.Context, svc api.Sessions, before []string, _ string) []string {
	v, _ := svc.Session(ctx, before[0]) // as in complete
	var list []string
	for _, e := range v.Execs {
		list = append(list, string(e.ID)+"\t"+oneLine(strings.Join(e.Argv, " "), 60))
	}
	return list
}

func languageNames(ctx context.Context, svc api.Languages, _ []string, _ string) []string {
	list, _ := svc.Languages(ctx) // as in complete
	var found []string
	for _, l := range list {
		found = append(found, l.Name)
	}
	return found
}

func questionIDs(ctx context.Context, svc api.Approvals, _ []string, _ string) []string {
	list, _ := svc.Approvals(ctx, sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending, sandbox.ApprovalApproved}}) // as in complete
	var found []string
	for _, a := range list {
		found = append(found, a.ID.Short()+"\t"+string(a.State))
	}
	return found
}

// entryRoles are what it takes to look into a workspace that has a sandbox.
type entryRoles interface {
	api.Sessions
	api.Workspaces
}

// entriesOf are those of the folder that was begun, where the session has a
// sandbox that can be asked: none is made for a name.
func entriesOf(ctx context.Context, svc entryRoles, before []string, begun string) []string {
	v, err := svc.Session(ctx, before[0])
	live := func(b sandbox.SandboxRecord) bool { return b.State == sandbox.StateReady }
	if err != nil || !slices.ContainsFunc(v.Sandboxes, live) {
		return nil
	}
	f, err := svc.Files(ctx, before[0])
	if err != nil {
		return nil
	}
	dir := path.Dir(begun + "x")
	var found []string
	for e, err := range f.Tree(ctx, dir, 1) {
		if err != nil {
			return found
		}
		name := begun[:strings.LastIndexByte(begun, '/')+1] + path.Base(e.Path)
		if e.Type == "dir" {
			name += "/"
		}
		found = append(found, name)
	}
	return found
}
