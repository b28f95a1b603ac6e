package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/caisson-dev/caisson/config"
	"github.com/caisson-dev/caisson/sandbox"
)

// notConfigured are flags that no variable and no file sets.
var notConfigured = []string{"help", "version", "config"}

// configure gives every flag that was not given its value: from its variable,
// else from the file, else it keeps its default.
func configure(cmd *cobra.Command, cfg Config, name string) error {
	if name == "" {
		name = cfg.getenv("CAISSON_CONFIG")
	}
	file := &config.File{}
	if cfg.File != nil {
		var err error
		if file, err = cfg.File(name); err != nil {
			return asUsage(cmd, err)
		}
	}
	err := file.Check(func(command, flag string) bool { return knownSetting(cmd.Root(), cfg.Settings, command, flag) })
	if err != nil {
		return err
	}
	if err := fromEnvironment(cmd, cfg.getenv); err != nil {
		return err
	}
	return fromFile(cmd, file)
}

// asUsage makes a file that is named and not there a wrong use.
func asUsage(cmd *cobra.Command, err error) error {
	if sandbox.KindOf(err) == sandbox.NotFound {
		return usageError(cmd, err)
	}
	return err
}

// knownSetting reports whether a command has a flag; for all commands, whether
// any has, or whether it is a setting without one.
func knownSetting(root *cobra.Command, settings []string, command, flag string) bool {
	if slices.Contains(notConfigured, flag) {
		return false
	}
	if command == "" && slices.Contains(settings, flag) {
		return true
	}
	if command == "" || pathOf(root) == command {
		if root.Flags().Lookup(flag) != nil || root.PersistentFlags().Lookup(flag) != nil {
			return true
		}
	}
	return slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return knownSetting(c, nil, command, flag) })
}

// pathOf is a command as the file names it: "session create".
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// fromFile sets the flags that neither the command line nor the environment has.
func fromFile(cmd *cobra.Command, file *config.File) error {
	var first error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		values, line := file.Values(pathOf(cmd), f.Name)
		if f.Changed || first != nil || slices.Contains(notConfigured, f.Name) {
			return
		}
		for _, v := range values {
			if err := cmd.Flags().Set(f.Name, v); err != nil && first == nil {
				first = file.Bad(line, err)
			}
		}
	})
	return first
}
