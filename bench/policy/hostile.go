package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/internal/hostile"
	"github.com/caisson-dev/caisson/policy"
)

// costly measures decisions on texts that are made to cost as much as they can.
// Each has the second that a scan and its rules are given, and half of one for
// what lies around them.
func costly(ctx context.Context, s *measure.Suite, p *policy.Policy) error {
	doubtful, plain := hostile.ForScanners()
	texts := append(append(hostile.ForRules(), doubtful...), plain...)
	if s.Smoke {
		texts = texts[:3]
	}
	set := measure.Set{Name: "hostile texts", Unit: "ms", Rounds: 3, Subjects: pace(1)}
	for _, text := range texts {
		set.Subjects = append(set.Subjects, measure.Subject{Name: text.Name, CPUs: float64(runtime.NumCPU()), Sample: measure.Millis(func(ctx context.Context) error {
			d := p.Judge(ctx, policy.Request{Language: string(text.Lang), Code: []byte(text.Code + "\n")})
			if d.Verdict == "" {
				return fmt.Errorf("no verdict: %+v", d)
			}
			return nil
		})})
		set.Rows = append(set.Rows, measure.Row{Name: "hostile/" + text.Name, Own: text.Name, Peer: yardstick, Bar: below(1500, 0)})
	}
	return s.Measure(ctx, set)
}
