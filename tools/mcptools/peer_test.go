package mcptools

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMain is the server where a test starts this program as one.
func TestMain(m *testing.M) {
	if peer := peers[os.Getenv("MCPTOOLS_PEER")]; peer != nil {
		peer()
		return
	}
	os.Exit(m.Run())
}

// peers are servers by name.
var peers = map[string]func(){
	"honest": func() { honest(os.Getenv("MCPTOOLS_SAYS")) },
	"dies": func() { // and has something else in each life
		lives := os.Getenv("MCPTOOLS_LIVES")
		before, _ := os.ReadFile(lives)
		if err := os.WriteFile(lives, append(before, 'x'), 0o600); err != nil {
			panic(err)
		}
		server := newPeer("")
		name := fmt.Sprintf("life%d", len(before)+1)
		addEcho(server, name)
		_ = server.Run(context.Background(), &mcp.StdioTransport{})
	},
	"never": func() { fmt.Fprintln(os.Stderr, "no key\nfor you"); os.Exit(7) },
	"garbage": func() {
		for {
			if _, err := fmt.Print("garbage "); err != nil {
				return
			}
		}
	},
	"long": func() {
		fmt.Print(`"`)
		for {
			if _, err := fmt.Print(strings.Repeat("a", 1<<16)); err != nil {
				return
			}
		}
	},
	"twice": func() { raw(2, "") },
	"talks": func() {
		raw(1, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
	},
}

type sayIn struct {
	Text string `json:"text" jsonschema:"what to say"`
}

type sayOut struct {
	Said string `json:"said"`
}

func newPeer(says string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "die", Description: "Ends the server."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "told to die")
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "say", Description: "Says it."}, func(_ context.Context, _ *mcp.CallToolRequest, in sayIn) (*mcp.CallToolResult, sayOut, error) {
		return nil, sayOut{in.Text + says}, nil
	})
	return server
}

func addEcho(server *mcp.Server, name string) {
	server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
	})
}

// honest is a server with a tool of each sort.
func honest(says string) {
	server := newPeer(says)
	add := func(name string, call mcp.ToolHandler) {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, call)
	}
	add("dotted.name/2", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a"}, &mcp.ImageContent{Data: []byte("abc"), MIMEType: "image/png"}}}, nil
	})
	add("nothing", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	})
	add("fails", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "it is broken"}}}, nil
	})
	add("hangs", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addEcho(server, "hanging")
		<-ctx.Done()
		addEcho(server, "cancelled") // which tells that the list has changed
		return nil, ctx.Err()
	})
	add("forget", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		server.RemoveTools("nothing")
		return &mcp.CallToolResult{}, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

// raw answers each call so often, with what it was and how often, and says something
// a thousand times before.
func raw(times int, before string) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil || len(m.ID) == 0 {
			continue
		}
		result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		n := 1
		switch m.Method {
		case "tools/list":
			result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}},{"name":"odd","inputSchema":{"type":"object","properties":{"x":{"type":7}}}}]}`
		case "tools/call":
			result, n = `{"content":[],"structuredContent":`+string(m.Params.Arguments)+`}`, times
			if before != "" {
				fmt.Print(strings.Repeat(before+"\n", 1000))
			}
		}
		for range n {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
			result = `{"content":[],"structuredContent":"again"}`
		}
	}
}
