package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
)

func newDoctor(cfg Config) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out whether caisson can work here, and what to mend",
		Long: `Examine the engine, this host and caisson's own parts. Each line is ok, a warning
(it works, with less safety, speed or room than it could) or an error, with what
mends it below. Nothing is changed.

Exit code: 0 where there is no error, 1 otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := examine(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return reportChecks(cfg.IO.Out, found, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// examine asks the service, or where there is none, what stands in for it.
func examine(ctx context.Context, cfg Config) ([]api.Check, error) {
	svc, err := open[api.Doctor](ctx, cfg)
	if err == nil {
		return svc.Doctor(ctx)
	}
	if cfg.Doctor == nil {
		return nil, err
	}
	return cfg.Doctor(ctx, err)
}

// reportChecks prints findings. An error among them is exit code 1.
func reportChecks(w io.Writer, found []api.Check, asJSON bool) error {
	errs, err := 0, error(nil)
	for _, c := range found {
		if c.Status != api.CheckOK && c.Status != api.CheckWarning { // also one that we do not know
			errs++
		}
	}
	if asJSON {
		err = json.NewEncoder(w).Encode(append([]api.Check{}, found...))
	} else {
		err = printChecks(w, found, errs)
	}
	if err == nil && errs > 0 {
		return exitCode(exitUnwell)
	}
	return err
}

func printChecks(w io.Writer, found []api.Check, errs int) error {
	width := 0
	for _, c := range found {
		width = max(width, len(c.Name))
	}
	const longest = 1000 // of a text that may be the engine's
	warnings, told := 0, map[string]bool{}
	for _, c := range found {
		if c.Status == api.CheckWarning {
			warnings++
		}
		text := fmt.Sprintf("%-7s  %-*s  %s\n", oneLine(string(c.Status), 20), width, oneLine(c.Name, 40), oneLine(c.Detail, longest))
		if again := c.Detail + "\n" + c.Mend; c.Mend != "" && !told[again] {
			told[again] = true // the same, of many that hang on one: once will do
			text += strings.Repeat(" ", width+11) + "mend: " + oneLine(c.Mend, longest) + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nerrors: %d, warnings: %d\n", errs, warnings)
	return err
}
