package policycmd

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/internal/shown"
	"github.com/caisson-dev/caisson/sandbox"
)

func newRules(io Streams, open func(ctx context.Context) (Policy, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "rules", Short: "List the rules", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		p, err := open(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(io.Out, p.Rules())
		}
		w := tabwriter.NewWriter(io.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tSEVERITY\tCATEGORY\tTITLE")
		for _, r := range p.Rules() {
			severity := r.Severity.String()
			if r.Deny {
				severity += " (deny)"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, severity, r.Category, r.Title)
		}
		return w.Flush()
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newExplain(io Streams, open func(ctx context.Context) (Policy, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "explain ID", Short: "Explain one rule", RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("explain takes one rule, not %d", len(args)).WithHint("see: caisson policy rules")
		}
		p, err := open(cmd.Context())
		if err != nil {
			return err
		}
		for _, r := range p.Rules() {
			if !strings.EqualFold(r.ID, args[0]) {
				continue
			}
			if asJSON {
				return writeJSON(io.Out, r)
			}
			_, err := fmt.Fprint(io.Out, explain(r))
			return err
		}
		return sandbox.Errorf(sandbox.NotFound, "no rule %q", args[0]).WithHint("see: caisson policy rules")
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func explain(r sandbox.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\nseverity     %s\ncategory     %s\n", r.ID, r.Title, r.Severity, r.Category)
	if r.Deny {
		b.WriteString("verdict      deny, no approval lifts it\n")
	}
	if refs := append(append([]string{}, r.CWE...), r.Attack...); len(refs) > 0 {
		fmt.Fprintf(&b, "references   %s\n", strings.Join(refs, " "))
	}
	fmt.Fprintf(&b, "instead      %s\n", r.Remediation)
	if r.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", r.Description)
	}
	examples(&b, "speaks of", r.Match)
	examples(&b, "does not speak of", r.NotMatch)
	return b.String()
}

func examples(b *strings.Builder, title string, list []sandbox.RuleExample) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, e := range list {
		fmt.Fprintf(b, "  %-11s %s\n", e.Language, strings.ReplaceAll(shown.Code(strings.ReplaceAll(e.Code, "\n", "␤")), "␤", "\n              "))
	}
}

func newTest(io Streams, open func(ctx context.Context) (Policy, error)) *cobra.Command {
	return &cobra.Command{Use: "test DIR", Short: "Run the tests and examples of a folder of rules", RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("test takes one folder, not %d", len(args)).WithHint("see: caisson policy test --help")
		}
		p, err := open(cmd.Context())
		if err != nil {
			return err
		}
		passed, failures, err := p.Test(cmd.Context(), args[0])
		if err != nil {
			return usage("%s: %w", args[0], err).WithHint("check the folder of rules")
		}
		if passed+len(failures) == 0 {
			return usage("%s: no tests", args[0]).WithHint("they stand in rules named test_… in files named …_test.rego, and as match and not_match in annotations")
		}
		for _, f := range failures {
			fmt.Fprintln(io.Out, "FAIL", shown.Text(f))
		}
		fmt.Fprintf(io.Out, "%d passed, %d failed\n", passed, len(failures))
		if len(failures) > 0 {
			return Exit(1)
		}
		return nil
	}}
}
