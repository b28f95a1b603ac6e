package cli

import (
	"github.com/spf13/cobra"

	"github.com/caisson-dev/caisson/api"
)

func newMetrics(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use: "metrics", Short: "Print metrics of all processes, for Prometheus", Args: cobra.NoArgs,
		Long: `Counters and histograms count what the audit holds, and begin anew where it was pruned. A file that Prometheus's node exporter
reads is made by: caisson metrics > caisson.prom`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := open[api.Monitoring](cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return svc.Metrics(cmd.Context(), cfg.IO.Out)
		},
	}
}
