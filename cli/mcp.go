package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/sandbox"
)

func newMCP(cfg Config) *cobra.Command {
	var approve sandbox.ApproveMode
	cmd := &cobra.Command{
		Use: "mcp", Short: "Be a tool for agents: speak the Model Context Protocol on standard input and output", Args: cobra.NoArgs,
		Long: `Speak the Model Context Protocol on standard input and output, until the input ends:
for agents and editors that start their tools themselves. It offers code, commands,
shells, sessions, files, changes, tests and the policy's judgement. docs/mcp.md has
what to write into the settings of the usual clients. With --host or CAISSON_HOST it
works on a server; caisson serve offers the same at /mcp.

What policy asks about, the client's user is asked where the client can show a form.
Else the question waits for caisson approvals approve, the answer says so, and the
same call passes afterwards.`,
		Example: `  caisson mcp                                         # needs a client at its input, as the next
  caisson mcp --approve never`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cfg.MCP(cmd.Context(), approve) },
	}
	cmd.Flags().Var((*approveFlag)(&approve), "approve", "what becomes of what policy asks about: `ask` and wait, later, never, or always (default the client's user, else later)")
	return cmd
}

// MCP speaks with a client on the command's own streams until its input ends or ctx
// is done.
type MCP func(ctx context.Context, approve sandbox.ApproveMode) error
