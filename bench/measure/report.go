package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"
)

// Line is one row of the result, as JSON has it.
type Line struct {
	Name     string  `json:"name"`
	Unit     string  `json:"unit"`
	N        int     `json:"n"`
	CPUs     float64 `json:"cpus"`
	P50      float64 `json:"p50"`
	Mean     float64 `json:"mean"`
	P99      float64 `json:"p99"`
	Peer     string  `json:"peer"`
	PeerP50  float64 `json:"peer_p50"`
	PeerMean float64 `json:"peer_mean"`
	PeerP99  float64 `json:"peer_p99"`
	// Ratio is P50 by PeerP50, and 0 without a peer.
	Ratio float64 `json:"ratio"`
	// Bar is what was asked, "" where nothing was; then OK is true.
	Bar string `json:"bar"`
	OK  bool   `json:"ok"`

	own string // the subject's name
}

func newLine(set *Set, row Row, samples map[string][]float64) Line {
	own, peer := Summarize(samples[row.Own]), Summarize(samples[row.Peer])
	l := Line{
		Name: row.Name, Unit: set.Unit, N: own.N, P50: own.P50, Mean: own.Mean, P99: own.P99,
		Peer: row.Peer, PeerP50: peer.P50, PeerMean: peer.Mean, PeerP99: peer.P99, OK: true, own: row.Own,
	}
	if sub := set.subject(row.Own); sub != nil {
		l.CPUs = sub.CPUs
	}
	if peer.P50 != 0 {
		l.Ratio = own.P50 / peer.P50
	}
	if row.Bar != nil {
		l.Bar = row.Bar.Asked
		l.OK = own.N > 0 && row.Bar.Holds(own, peer)
	}
	return l
}

func printJSON(w io.Writer, lines []Line) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}

// printTable shows each subject's figures, and below them what was asked.
func printTable(w io.Writer, set *Set, samples map[string][]float64, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	// Errors of the lines come back from Flush.
	_, _ = fmt.Fprintf(t, "\n%s\t%s\tn\tp50\tmean\tp99\t\n", set.Name+", "+set.Unit, "cpus")
	for _, sub := range set.Subjects {
		st := Summarize(samples[sub.Name])
		_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t\n", sub.Name, figure(sub.CPUs), st.N, figure(st.P50), figure(st.Mean), figure(st.P99))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	for _, l := range lines {
		mark := "  "
		if l.Bar != "" {
			mark = map[bool]string{true: "ok", false: "NO"}[l.OK]
		}
		text := l.own
		if l.Peer != "" && l.Ratio > 0 {
			text = fmt.Sprintf("%s is %.2f x %s", l.own, l.Ratio, l.Peer)
		}
		if l.Bar != "" {
			text += "; asked: " + l.Bar
		}
		if _, err := fmt.Fprintf(w, "  %s  %s\n", mark, text); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	return nil
}

// figure prints three digits that count.
func figure(v float64) string {
	switch {
	case v == 0:
		return "-"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// rawLine is one line of the file of raw samples.
type rawLine struct {
	Set     string    `json:"set"`
	Subject string    `json:"subject"`
	Unit    string    `json:"unit"`
	CPUs    float64   `json:"cpus"`
	Samples []float64 `json:"samples"`
}

// keep appends every sample to the run's file, which it makes at first use.
func (s *Suite) keep(set Set, samples map[string][]float64) error {
	if s.raw == nil {
		if err := os.MkdirAll(s.Results, 0o755); err != nil {
			return fmt.Errorf("keep the samples: %w", err)
		}
		name := s.program + "-" + time.Now().Format("20060102-150405.000") + ".jsonl"
		f, err := os.Create(filepath.Join(s.Results, name))
		if err != nil {
			return fmt.Errorf("keep the samples: %w", err)
		}
		s.raw = f
	}
	enc := json.NewEncoder(s.raw)
	for _, sub := range set.Subjects {
		err := enc.Encode(rawLine{Set: set.Name, Subject: sub.Name, Unit: set.Unit, CPUs: sub.CPUs, Samples: samples[sub.Name]})
		if err != nil {
			return fmt.Errorf("keep the samples: %w", err)
		}
	}
	return nil
}

func (s *Suite) close() error {
	if s.raw == nil {
		return nil
	}
	s.Note("\nraw samples: %s", s.raw.Name())
	return s.raw.Close()
}
