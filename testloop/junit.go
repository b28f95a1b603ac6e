package testloop

import (
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	File    string     `xml:"file,attr,omitempty"`
	Line    int        `xml:"line,attr,omitempty"`
	Failure *junitText `xml:"failure"`
	Error   *junitText `xml:"error"`
	Skipped *junitText `xml:"skipped"`
	Output  string     `xml:"system-out,omitempty"`
	Stderr  string     `xml:"system-err,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes a result as JUnit's XML. Files that could not be collected are
// errors in it.
func (r Result) JUnit(w io.Writer) error {
	s := junitSuite{
		Name: "caisson", Tests: r.Totals.Tests + len(r.Problems), Failures: r.Totals.Failed,
		Errors:  r.Totals.Errored + r.Totals.Timeout + r.Totals.Crashed + len(r.Problems),
		Skipped: r.Totals.Skipped + r.Totals.XFailed, Time: fmt.Sprintf("%.3f", r.Duration.Seconds()),
	}
	for _, t := range r.Tests {
		file, name, in := strings.Cut(t.ID, "::")
		if !in {
			file, name = "", t.ID
		}
		c := junitCase{
			Class: printable(strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ".")), Name: printable(name),
			Time: fmt.Sprintf("%.3f", t.Duration.Seconds()), File: printable(t.File), Line: t.Line, Output: printable(t.Output),
		}
		text := &junitText{Message: printable(t.Message), Type: printable(t.Type), Text: printable(trace(t.Traceback))}
		switch t.Outcome {
		case Passed, XPassed:
		case Skipped, XFailed:
			c.Skipped = &junitText{Message: text.Message, Type: string(t.Outcome)}
		case Failed:
			c.Failure = text
		default:
			text.Type = string(t.Outcome)
			c.Error = text
		}
		s.Cases = append(s.Cases, c)
	}
	for _, p := range r.Problems {
		text := &junitText{Message: printable(p.Message), Type: printable(p.Type), Text: printable(trace(p.Traceback))}
		s.Cases = append(s.Cases, junitCase{Name: printable(p.File), Time: "0.000", Error: text})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func trace(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s:%d: in %s: %s\n", f.File, f.Line, f.Function, f.Source)
	}
	return b.String()
}

// printable leaves out what XML cannot say.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) && r != 0xFFFE && r != 0xFFFF {
			return r
		}
		return '\uFFFD'
	}, s)
}
