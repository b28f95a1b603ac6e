package measure

import (
	"math"
	"slices"
)

// Stats sums up the samples of one subject. Its zero value is that of no
// samples.
type Stats struct {
	N              int
	P50, Mean, P99 float64
}

// Summarize leaves samples as they are. Percentiles are the nearest rank: each
// is a sample that was taken.
func Summarize(samples []float64) Stats {
	if len(samples) == 0 {
		return Stats{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	rank := func(p float64) float64 { return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)] }
	return Stats{N: len(sorted), P50: rank(0.50), Mean: sum / float64(len(sorted)), P99: rank(0.99)}
}

// Bar is what is asked of a subject, beside its peer.
type Bar struct {
	// Asked says it for people and machines, such as "p50 <= peer + 0.7 ms".
	Asked string
	Holds func(own, peer Stats) bool
}

// AtMost asks that the median be no more than factor times the peer's.
func AtMost(asked string, factor float64) *Bar {
	return &Bar{Asked: asked, Holds: func(own, peer Stats) bool { return own.P50 <= factor*peer.P50 }}
}

// AtLeast asks that the median be no less than factor times the peer's.
func AtLeast(asked string, factor float64) *Bar {
	return &Bar{Asked: asked, Holds: func(own, peer Stats) bool { return own.P50 >= factor*peer.P50 }}
}

// Below asks that every sample be no more than a limit.
func Below(asked string, limit float64) *Bar {
	return &Bar{Asked: asked, Holds: func(own, _ Stats) bool { return own.P99 <= limit }}
}
