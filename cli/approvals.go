package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/internal/question"
	"github.com/caisson-dev/caisson/sandbox"
)

func newApprovals(cfg Config) *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "Answer what policy asks about runs, also those of other processes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newApprovalsList(cfg), newApprovalsShow(cfg), newApprovalsApprove(cfg), newApprovalsDeny(cfg))
	return cmd
}

func newApprovalsList(cfg Config) *cobra.Command {
	var all, asJSON bool
	var labels []string
	var limit int
	var after string
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List questions that wait for an answer", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Approvals](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			filter := sandbox.ApprovalFilter{States: []sandbox.ApprovalState{sandbox.ApprovalPending}, Limit: limit}
			if all {
				filter.States = nil
			}
			if filter.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			if after != "" {
				if filter.After, err = approvalID(cmd.Context(), svc, after); err != nil {
					return err
				}
			}
			list, err := svc.Approvals(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, list)
			}
			return listApprovals(cfg.IO.Out, list)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&all, "all", "a", false, "also those that were answered or whose time is over")
	labelFilterFlag(f, &labels)
	limitFlag(f, &limit, 0, "at most so many")
	f.StringVar(&after, "after", "", "only those behind this `QUESTION`: the last one of the page before")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func listApprovals(w io.Writer, list []sandbox.Approval) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-13s %-10s %-8s %-8s %-24s %s\n", "QUESTION", "STATE", "AGE", "LEVEL", "RULES", "COMMAND")
	for _, a := range list {
		seen := map[string]bool{}
		var ids []string
		for _, f := range a.Decision.Findings {
			if f.Verdict != sandbox.Allow && !seen[f.ID] {
				seen[f.ID] = true
				ids = append(ids, f.ID)
			}
		}
		words := make([]string, len(a.Question.Command))
		for i, word := range a.Question.Command {
			words[i] = question.Word(word)
		}
		if q := a.Question; q.Kind == sandbox.QuestionConnection {
			words = append([]string{"connect", question.Word(net.JoinHostPort(q.Host, strconv.Itoa(q.Port))), "by"}, words...)
		} else if q.Tool != "" {
			words = []string{"tool", question.Word(q.Tool), question.Word(string(q.Arguments))}
		}
		state := string(a.State)
		if a.Always {
			state += "*"
		}
		fmt.Fprintf(&b, "%-13s %-10s %-8s %-8s %-24s %s\n", a.ID.Short(), state, time.Since(a.Asked).Round(time.Second),
			a.Decision.Level, strings.Join(ids, ","), strings.Join(words, " "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// approvalID completes the beginning of a question's id.
func approvalID(ctx context.Context, svc api.Approvals, prefix string) (sandbox.ID, error) {
	if id := sandbox.ID(prefix); id.Valid() {
		return id, nil
	}
	list, err := svc.Approvals(ctx, sandbox.ApprovalFilter{})
	if err != nil {
		return "", err
	}
	var found []sandbox.ID
	for _, a := range list {
		if prefix != "" && strings.HasPrefix(string(a.ID), prefix) {
			found = append(found, a.ID)
		}
	}
	if len(found) != 1 {
		return "", sandbox.Errorf(sandbox.NotFound, "%d questions begin with %q", len(found), prefix).WithHint("see them with: caisson approvals list --all")
	}
	return found[0], nil
}

func newApprovalsShow(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show QUESTION", Short: "Show all of a question: what would run, and why policy asks", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, err := open[api.Approvals](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			id, err := approvalID(cmd.Context(), svc, args[0])
			if err != nil {
				return err
			}
			a, err := svc.Approval(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cfg.IO.Out, a)
			}
			text := question.Text(a) + fmt.Sprintf("  %s", a.State)
			if a.By != "" {
				text += " by " + visible(a.By) + " (" + a.Via + ")"
			}
			_, err = io.WriteString(cfg.IO.Out, text+"\n")
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newApprovalsApprove(cfg Config) *cobra.Command {
	var ans sandbox.ApprovalAnswer
	cmd := &cobra.Command{
		Use: "approve QUESTION", Short: "Let it run, once, or always", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ans.Approve = true
			return answerQuestion(cmd.Context(), cfg, args[0], ans)
		},
	}
	cmd.Flags().BoolVar(&ans.Always, "always", false, "let exactly this pass from now on; caisson approvals deny takes it back")
	cmd.Flags().StringVar(&ans.Note, "note", "", "`TEXT` for the audit")
	return cmd
}

func newApprovalsDeny(cfg Config) *cobra.Command {
	var ans sandbox.ApprovalAnswer
	cmd := &cobra.Command{
		Use: "deny QUESTION", Short: "Refuse it, or take back an approval that still holds", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return answerQuestion(cmd.Context(), cfg, args[0], ans) },
	}
	cmd.Flags().StringVar(&ans.Note, "note", "", "`TEXT` for whoever asked, and for the audit")
	return cmd
}

func answerQuestion(ctx context.Context, cfg Config, prefix string, ans sandbox.ApprovalAnswer) error {
	svc, err := open[api.Approvals](ctx, cfg)
	if err != nil {
		return err
	}
	if ans.ID, err = approvalID(ctx, svc, prefix); err != nil {
		return err
	}
	ans.By, ans.Via = userName(), "api"
	a, err := svc.Approval(ctx, ans.ID)
	if err != nil {
		return err
	}
	if !ans.Approve && a.State == sandbox.ApprovalApproved {
		a, err = svc.RevokeApproval(ctx, ans.ID, ans.By)
	} else {
		a, err = svc.AnswerApproval(ctx, ans)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cfg.IO.Out, "%s %s\n", a.ID.Short(), a.State)
	return err
}
