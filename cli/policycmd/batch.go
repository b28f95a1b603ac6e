package policycmd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/caisson-dev/caisson/sandbox"
)

// maxLine bounds one line of a batch. A program is refused long before.
const maxLine = 8 << 20

// batchRow is one line of a batch; its id may be any JSON value.
type batchRow struct {
	ID       json.RawMessage `json:"id"`
	Language string          `json:"language"`
	Code     *string         `json:"code"`
}

// batchAnswer is the line that answers it.
type batchAnswer struct {
	ID json.RawMessage `json:"id"`
	sandbox.Decision
}

// batchJob is a line that is being judged.
type batchJob struct {
	id   json.RawMessage
	done chan sandbox.Decision
}

// runBatch judges lines on all cores and answers in their order. At most a few
// lines for each core are held at once. A line that holds no program is not
// allowed; those behind it are judged all the same.
func (o *checkOptions) runBatch(ctx context.Context, p Policy) error {
	in := o.io.In
	if len(o.files) == 1 && o.files[0] != "-" {
		f, err := os.Open(o.files[0])
		if err != nil {
			return usage("%w", err).WithHint("check the path; it is looked for on this host")
		}
		defer f.Close()
		in = f
	}
	queue := make(chan batchJob, 4*runtime.NumCPU())
	var readErr error
	go func() { // owned: ends with the input or ctx, and closes queue, for which the loop below waits
		defer close(queue)
		readErr = o.readBatch(ctx, in, p, queue)
	}()
	w := bufio.NewWriter(o.io.Out)
	allowed := true
	var writeErr error
	for j := range queue {
		d := <-j.done
		allowed = allowed && d.Verdict.Permits()
		if writeErr == nil {
			writeErr = writeJSON(w, batchAnswer{ID: j.id, Decision: d})
		}
	}
	if err := w.Flush(); err != nil || writeErr != nil {
		return fmt.Errorf("write answers: %w", firstError(writeErr, err))
	}
	if readErr != nil {
		return usage("%w", readErr).WithHint("write JSON lines {id, language, code}, and - or nothing for standard input")
	}
	if !allowed {
		return Exit(1)
	}
	return nil
}

// readBatch starts a judgement for each line. The error is the first line's
// that holds no program, or the input's.
func (o *checkOptions) readBatch(ctx context.Context, in io.Reader, p Policy, queue chan<- batchJob) error {
	slots := make(chan struct{}, runtime.NumCPU())
	r := bufio.NewReaderSize(in, 64<<10)
	var first error
	for n := 1; ; n++ {
		line, long, err := readLine(r)
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			j := batchJob{done: make(chan sandbox.Decision, 1)}
			row, bad := parseRow(line, long)
			j.id = row.ID
			if bad != nil {
				first = firstError(first, fmt.Errorf("line %d: %w", n, bad))
				j.done <- unreadable(bad)
			} else {
				select {
				case slots <- struct{}{}:
				case <-ctx.Done():
					return ctx.Err()
				}
				go func() {
					j.done <- p.Check(ctx, row.Language, []byte(*row.Code), "", o.surroundings())
					<-slots
				}()
			}
			queue <- j
		}
		if errors.Is(err, io.EOF) {
			return first
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line; of one that is too long, its beginning.
func readLine(r *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) <= maxLine {
			line = append(line, part...)
		} else {
			long = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// parseRow reads one line. Of one that is too long, only the id is read, where
// it stands first.
func parseRow(line []byte, long bool) (batchRow, error) {
	var row batchRow
	if long {
		d := json.NewDecoder(bytes.NewReader(line))
		if _, err := d.Token(); err == nil {
			if key, err := d.Token(); err == nil && key == "id" && d.Decode(&row.ID) != nil {
				row.ID = nil
			}
		}
		return row, fmt.Errorf("more than %d bytes", maxLine)
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return batchRow{ID: row.ID}, err
	}
	if row.Code == nil {
		return row, errors.New("no code")
	}
	if !known(row.Language) {
		return row, fmt.Errorf("unknown language %q", row.Language)
	}
	return row, nil
}

// unreadable is the decision about a line that holds no program.
func unreadable(err error) sandbox.Decision {
	return sandbox.Decision{Verdict: sandbox.Ask, Level: sandbox.High, Findings: []sandbox.Finding{{
		ID: "SBX-EV-0002", Title: "Is no program of its language", Severity: sandbox.High, Category: "evasion", Verdict: sandbox.Ask,
		Message: "the line holds no program: " + err.Error(), Remediation: "Send {\"id\": …, \"language\": …, \"code\": …} on one line.",
	}}}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
