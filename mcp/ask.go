package mcp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/internal/question"
	"github.com/caisson-dev/caisson/sandbox"
)

// shownQuestion bounds what a form shows of a question, in bytes. What is left out
// is said to be.
const shownQuestion = 12 << 10

// The answers in the form.
const (
	once   = "run it once"
	always = "always run this very program"
	never  = "do not run it"
)

func formOf(a sandbox.Approval) map[string]any {
	title := "Run it?"
	if a.Question.Kind == sandbox.QuestionConnection {
		title = "Let it connect?"
	}
	return map[string]any{
		"type": "object", "required": []string{"answer"},
		"properties": map[string]any{"answer": map[string]any{
			"type": "string", "title": title, "description": "caisson's policy asks about it: read what it would do", "enum": []string{never, once, always},
		}},
	}
}

// asker has the client's user asked, by a form. nil where the client shows none, or
// nobody is to be asked.
func (s *Server) asker(session *mcp.ServerSession, who sandbox.Caller) sandbox.Asker {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.Elicitation == nil {
		return nil
	}
	if can := params.Capabilities.Elicitation; can.Form == nil && can.URL != nil {
		return nil
	}
	if s.cfg.Approve == sandbox.ApproveNever || s.cfg.Approve == sandbox.ApproveAlways {
		return nil
	}
	client := "the user of a client"
	if params.ClientInfo != nil {
		client = "the user of " + params.ClientInfo.Name
	}
	return func(ctx context.Context, a sandbox.Approval) (sandbox.ApprovalAnswer, error) {
		ans := sandbox.ApprovalAnswer{ID: a.ID, By: cmp.Or(who.Name, client), Via: "mcp"}
		said, err := session.Elicit(ctx, &mcp.ElicitParams{Message: asked(a), RequestedSchema: formOf(a)})
		if err != nil {
			return ans, err
		}
		// Whatever is not a clear yes is a no.
		if said.Action == "accept" {
			ans.Always = said.Content["answer"] == always
			ans.Approve = ans.Always || said.Content["answer"] == once
		}
		if !ans.Approve {
			ans.Note = "the form was answered with " + said.Action
		}
		return ans, nil
	}
}

// asked is a question as a form shows it.
func asked(a sandbox.Approval) string {
	text := question.Text(a)
	if len(text) <= shownQuestion {
		return text
	}
	return question.Findings(a.Decision) + strings.ToValidUTF8(text[:shownQuestion], "") +
		fmt.Sprintf("\n[… %d bytes more are not shown here. See all with: caisson approvals show %s]\n", len(text)-shownQuestion, a.ID.Short())
}
