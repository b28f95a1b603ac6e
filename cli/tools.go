package cli

import (
	"context"

	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
	"github.com/caisson-dev/caisson/tools/mcptools"
)

// openTools reads the tools that this process answers for what it runs, until end is
// called.
func (o *runOptions) openTools(ctx context.Context, cfg Config) (all []sandbox.Callable, end func(), err error) {
	end = func() {}
	if o.tools == "" {
		return nil, end, nil
	}
	if o.detach {
		return nil, end, sandbox.Errorf(sandbox.Invalid, "--tools with --detach: nobody would answer").WithHint("declare the tools in caisson.yaml of the server, or leave --detach out")
	}
	entries, err := tools.Load(o.tools)
	if err != nil {
		return nil, end, err
	}
	getenv := func(name string) string {
		value, _ := cfg.LookupEnv(name)
		return value
	}
	if all, err = tools.Open(entries, o.tools, getenv); err != nil {
		return nil, end, err
	}
	servers, err := mcptools.Open(entries, o.tools, getenv, nil)
	end = func() {
		for _, s := range servers {
			_ = s.Close() // it says nothing
		}
	}
	for _, s := range servers {
		all = append(all, s.Tools(ctx)...)
		if err = s.Err(); err != nil {
			end()
			return nil, end, err
		}
	}
	return all, end, err
}
