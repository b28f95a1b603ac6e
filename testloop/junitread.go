package testloop

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// junitReader reads one report.
type junitReader struct {
	r     Result
	suite []junitCount // those that are open
}

// junitCount is what a suite says of its tests, and how many came.
type junitCount struct {
	name       string
	told, came int
}

// ReadJUnit reads what a program reports as JUnit's XML, with suites in suites. It
// never fails: what cannot be meant, such as half a report or a suite that has
// fewer tests than it says, is a problem in the Result, and it did not pass.
func ReadJUnit(report []byte) Result {
	j := &junitReader{r: Result{Trust: TrustSelf}}
	dec := xml.NewDecoder(bytes.NewReader(report))
	dec.CharsetReader = latin1
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = j.token(dec, tok)
		}
		if err == nil && len(j.r.Tests) > mostReported {
			err = fmt.Errorf("it reports more than %d tests", mostReported)
		}
		if err != nil {
			j.problem("the report could not be read: %v", err)
			break
		}
	}
	if len(j.r.Tests)+len(j.r.Problems) == 0 {
		j.problem("it reported no tests")
	}
	j.r.settle()
	return j.r
}

func (j *junitReader) problem(format string, args ...any) {
	if len(j.r.Problems) < 100 {
		j.r.Problems = append(j.r.Problems, Problem{Message: fmt.Sprintf(format, args...)})
	}
}

func (j *junitReader) token(dec *xml.Decoder, tok xml.Token) error {
	switch t := tok.(type) {
	case xml.StartElement:
		switch t.Name.Local {
		case "testsuite":
			j.suite = append(j.suite, counted(t))
		case "testcase":
			var c junitCase
			if err := dec.DecodeElement(&c, &t); err != nil {
				return err
			}
			j.r.Tests = append(j.r.Tests, c.test())
			for i := range j.suite {
				j.suite[i].came++
			}
		}
	case xml.EndElement:
		if t.Name.Local == "testsuite" && len(j.suite) > 0 {
			s := j.suite[len(j.suite)-1]
			if j.suite = j.suite[:len(j.suite)-1]; s.came < s.told {
				j.problem("the tests of %q were to be %d and were %d", s.name, s.told, s.came)
			}
		}
	}
	return nil
}

func counted(t xml.StartElement) junitCount {
	var c junitCount
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "name":
			c.name = shorten(a.Value)
		case "tests":
			c.told, _ = strconv.Atoi(a.Value) // not a number is nothing told
		}
	}
	return c
}

// test is a case as a result has it.
func (c junitCase) test() Test {
	t := Test{ID: shorten(c.Name), Outcome: Passed, File: shorten(c.File), Line: c.Line}
	if c.Class != "" {
		t.ID = shorten(c.Class) + "::" + t.ID
	}
	if s, err := strconv.ParseFloat(strings.ReplaceAll(c.Time, ",", ""), 64); err == nil && s >= 0 && s < 1e6 {
		t.Duration = time.Duration(s * float64(time.Second))
	}
	var why *junitText
	switch {
	case c.Error != nil:
		t.Outcome, why = Errored, c.Error
		if o := Outcome(why.Type); o == Timeout || o == Crashed { // as JUnit writes them
			t.Outcome = o
		}
	case c.Failure != nil:
		t.Outcome, why = Failed, c.Failure
	case c.Skipped != nil:
		t.Outcome, why = Skipped, c.Skipped
		if strings.HasSuffix(why.Type, "xfail") || why.Type == string(XFailed) {
			t.Outcome = XFailed
		}
	}
	if why != nil {
		text := strings.TrimSpace(why.Text)
		t.Type, t.Message = shorten(why.Type), shorten(cmp.Or(why.Message, text))
		if text != "" && !strings.Contains(t.Message, text) {
			t.Message = shorten(t.Message + "\n" + text)
		}
	}
	said := &excerpt{}
	said.add([]byte(c.Output))
	said.add([]byte(c.Stderr))
	t.Output, t.Lost = said.text(), said.lost
	return t
}

// latin1 reads the encodings whose bytes are code points.
func latin1(charset string, in io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252":
	default:
		return nil, sandbox.Errorf(sandbox.Unsupported, "the encoding %s", charset)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return strings.NewReader(string(runes)), nil
}
