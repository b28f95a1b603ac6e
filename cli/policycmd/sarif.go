package policycmd

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifRule struct {
	ID               string         `json:"id"`
	ShortDescription sarifText      `json:"shortDescription"`
	Help             sarifText      `json:"help"`
	Properties       map[string]any `json:"properties,omitempty"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	PhysicalLocation sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	ArtifactLocation struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region *sarifRegion `json:"region,omitempty"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
	EndLine     int `json:"endLine,omitempty"`
	EndColumn   int `json:"endColumn,omitempty"`
}

// sarifLevel is SARIF's word for a severity.
func sarifLevel(l sandbox.Level) string {
	switch {
	case l >= sandbox.High:
		return "error"
	case l == sandbox.Medium:
		return "warning"
	}
	return "note"
}

// writeSARIF prints all findings as one SARIF 2.1.0 log with one run.
func writeSARIF(w io.Writer, programs []program, rules []sandbox.Rule) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "caisson", InformationURI: "https://github.com/caisson-dev/caisson", Rules: []sarifRule{}}
	for _, r := range rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: r.ID, ShortDescription: sarifText{r.Title}, Help: sarifText{r.Remediation},
			Properties: map[string]any{"category": r.Category, "severity": r.Severity, "tags": append(append([]string{}, r.CWE...), r.Attack...)}})
	}
	for _, p := range programs {
		lines := strings.Split(string(p.code), "\n")
		for _, f := range p.decision.Findings {
			res := sarifResult{RuleID: f.ID, Level: sarifLevel(f.Severity), Message: sarifText{f.Message}}
			var loc sarifLocation
			loc.PhysicalLocation.ArtifactLocation.URI = (&url.URL{Path: filepath.ToSlash(f.File)}).String()
			if f.File == "" {
				loc.PhysicalLocation.ArtifactLocation.URI = "code"
			}
			if f.Line > 0 {
				loc.PhysicalLocation.Region = &sarifRegion{f.Line, codePoints(lines, f.Line, f.Column), f.EndLine, codePoints(lines, f.EndLine, f.EndColumn)}
			}
			res.Locations = []sarifLocation{loc}
			run.Results = append(run.Results, res)
		}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

// codePoints is a column counted in characters, where it was one in bytes.
func codePoints(lines []string, line, column int) int {
	if line < 1 || line > len(lines) || column < 1 {
		return column
	}
	return utf8.RuneCountInString(lines[line-1][:min(column-1, len(lines[line-1]))]) + 1
}
