package measure

import (
	"context"
	"fmt"
	"time"
)

// Subject is one thing that is measured.
type Subject struct {
	Name string
	// CPUs is the CPU limit that it runs under, in cores.
	CPUs float64
	// Every takes a sample in each Every-th round only, for what is slow. 0 is
	// in each.
	Every int
	// Sample takes one sample, in the set's unit.
	Sample func(ctx context.Context) (float64, error)
}

// Row is a line of the result: a subject beside a peer. Both are named by their
// Subject's name.
type Row struct {
	Name, Own, Peer string
	Bar             *Bar // nil asks nothing
}

// Set is a number of subjects that are measured in turn.
type Set struct {
	Name, Unit string
	// Rounds is how often each subject is sampled, after Warmup rounds that
	// are thrown away. A smoke run takes fewer.
	Rounds, Warmup int
	// Settle is the pause behind a subject with Every, which leaves work
	// behind for others.
	Settle   time.Duration
	Subjects []Subject
	Rows     []Row
}

// Millis makes a sample, in milliseconds, of how long do takes.
func Millis(do func(ctx context.Context) error) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		err := do(ctx)
		return float64(time.Since(start)) / float64(time.Millisecond), err
	}
}

// Rate makes a sample, per second, of how often do gets done by workers that
// work side by side for a while. Each call of do gets its worker's number.
func Rate(workers int, while time.Duration, do func(ctx context.Context, worker int) error) func(context.Context) (float64, error) {
	type answer struct {
		n   int
		err error
	}
	return func(ctx context.Context) (float64, error) {
		start := time.Now()
		answers := make(chan answer, workers)
		for w := range workers {
			go func() {
				a := answer{}
				for a.err == nil && time.Since(start) < while {
					a.err = do(ctx, w)
					a.n++
				}
				answers <- a
			}()
		}
		total := 0
		var err error
		for range workers {
			a := <-answers
			total += a.n
			if err == nil {
				err = a.err
			}
		}
		return float64(total) / time.Since(start).Seconds(), err
	}
}

// run takes the samples of every subject, by name. Its error names the subject.
func (s *Set) run(ctx context.Context, rounds, warmup int) (map[string][]float64, error) {
	samples := map[string][]float64{}
	for round := -warmup; round < rounds; round++ {
		for i := range s.Subjects {
			// Who comes behind a slow one changes from round to round.
			sub := s.Subjects[(i+max(round, 0))%len(s.Subjects)]
			if sub.Every > 1 && round >= 0 && round%sub.Every != 0 {
				continue
			}
			v, err := sub.Sample(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.Name, sub.Name, err)
			}
			if round >= 0 {
				samples[sub.Name] = append(samples[sub.Name], v)
			}
			if sub.Every > 1 && s.Settle > 0 {
				time.Sleep(s.Settle)
			}
		}
	}
	return samples, nil
}

func (s *Set) subject(name string) *Subject {
	for i := range s.Subjects {
		if s.Subjects[i].Name == name {
			return &s.Subjects[i]
		}
	}
	return nil
}
