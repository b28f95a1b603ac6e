package policycmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/caisson-dev/caisson/sandbox"
)

// batchRow is one line of a batch; its id may be any JSON value.
type batchRow struct {
	ID       json.RawMessage `json:"id"`
	Language string          `json:"language"`
	Code     string          `json:"code"`
}

// batchAnswer is the line that answers it.
type batchAnswer struct {
	ID json.RawMessage `json:"id"`
	sandbox.Decision
}

// runBatch judges lines on all cores and answers in their order. At most a few
// lines for each core are held at once.
func (o *checkOptions) runBatch(ctx context.Context, p Policy) error {
	in := o.io.In
	if len(o.files) == 1 && o.files[0] != "-" {
		f, err := os.Open(o.files[0])
		if err != nil {
			return usage(o.io.Err, "%v", err)
		}
		defer f.Close()
		in = f
	}
	type job struct {
		row  batchRow
		done chan sandbox.Decision
	}
	queue := make(chan job, 4*runtime.NumCPU())
	var readErr error
	go func() { // owned: ends with the input or ctx, and closes queue, for which the loop below waits
		defer close(queue)
		slots := make(chan struct{}, runtime.NumCPU())
		sc := bufio.NewScanner(in)
		sc.Buffer(nil, 8<<20)
		for n := 1; sc.Scan(); n++ {
			if len(sc.Bytes()) == 0 {
				continue
			}
			j := job{done: make(chan sandbox.Decision, 1)}
			if err := json.Unmarshal(sc.Bytes(), &j.row); err != nil {
				readErr = fmt.Errorf("line %d: %w", n, err)
				return
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				readErr = ctx.Err()
				return
			}
			go func() {
				j.done <- p.Check(ctx, j.row.Language, []byte(j.row.Code), "")
				<-slots
			}()
			queue <- j
		}
		readErr = sc.Err()
	}()
	w := bufio.NewWriter(o.io.Out)
	allowed := true
	var writeErr error
	for j := range queue {
		d := <-j.done
		allowed = allowed && d.Verdict.Permits()
		if writeErr == nil {
			writeErr = writeJSON(w, batchAnswer{ID: j.row.ID, Decision: d})
		}
	}
	if err := w.Flush(); err != nil || writeErr != nil {
		return fmt.Errorf("write answers: %w", firstError(writeErr, err))
	}
	if readErr != nil {
		return usage(o.io.Err, "%v", readErr)
	}
	if !allowed {
		return Exit(1)
	}
	return nil
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
