package mcp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// about describes a tool. reads says that it changes nothing, harms that what it
// takes away does not come back.
type about struct {
	name, title, text string
	reads, harms      bool
}

func (a about) tool() *mcp.Tool {
	open := false
	return &mcp.Tool{Name: a.name, Title: a.title, Description: a.text, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: a.reads, DestructiveHint: &a.harms, OpenWorldHint: &open}}
}

// failure is an error as a tool's answer.
type failure struct {
	Error sandbox.Problem `json:"error"`
}

// add adds a tool whose answer is an object of the API's.
func add[In any](s *Server, a about, do func(ctx context.Context, in In) (any, error)) {
	mcp.AddTool(s.mcp, a.tool(), func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		out, err := do(ctx, in)
		if err == nil {
			return nil, out, nil
		}
		if gone := gaveUp(ctx, err); gone != nil {
			return nil, nil, gone
		}
		return &mcp.CallToolResult{IsError: true}, failure{sandbox.ProblemOf(err, 0)}, nil
	})
}

// gaveUp is the error of a call that nobody waits for any more.
func gaveUp(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return ctx.Err()
	}
	return nil
}

// items is an answer that is a list, which has to be an object.
type items[T any] struct {
	Items []T `json:"items"`
}

func listed[T any](all []T, err error) (any, error) {
	if all == nil {
		all = []T{}
	}
	return items[T]{all}, err
}

// jsonText is a value as a text for a model.
func jsonText(v any) (mcp.Content, error) {
	b, err := json.Marshal(v)
	return &mcp.TextContent{Text: string(b)}, err
}
