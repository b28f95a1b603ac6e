package cli

import (
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/tools"
)

// openTools reads the tools that this process answers for what it runs.
func (o *runOptions) openTools(cfg Config) ([]sandbox.Callable, error) {
	if o.tools == "" {
		return nil, nil
	}
	if o.detach {
		return nil, sandbox.Errorf(sandbox.Invalid, "--tools with --detach: nobody would answer").WithHint("declare the tools in caisson.yaml of the server, or leave --detach out")
	}
	entries, err := tools.Load(o.tools)
	if err != nil {
		return nil, err
	}
	return tools.Open(entries, o.tools, func(name string) string {
		value, _ := cfg.LookupEnv(name)
		return value
	})
}
