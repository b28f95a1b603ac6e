package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/pflag"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

// batchOptions are the flags about many lines, of `caisson run` and `caisson test`.
type batchOptions struct {
	file    string
	workers int
	output  string
	resume  bool
}

// flags are those of a command that does something with each of many things.
func (o *batchOptions) flags(f *pflag.FlagSet, does, things string) {
	f.StringVar(&o.file, "batch", "", does+" the "+things+" in this `FILE`, one JSON object a line; - is standard input")
	f.IntVar(&o.workers, "workers", 0, does+" so many "+things+" at once (default one for each processor)")
	f.StringVar(&o.output, "output", "", "write results to this `FILE` instead of standard output")
	f.BoolVar(&o.resume, "resume", false, "leave out "+things+" whose result stands in the file of --output, and add to it")
}

// atOnce is how many are worked on at once.
func (o *batchOptions) atOnce() int { return cmp.Or(o.workers, runtime.NumCPU()) }

// given reports whether flags are set that are for a batch alone.
func (o *batchOptions) given() bool { return o.workers != 0 || o.output != "" || o.resume }

// check says which flags cannot be meant together.
func (o *batchOptions) check() error {
	switch {
	case o.file == "":
		return sandbox.Errorf(sandbox.Invalid, "--workers, --output, --resume and --ordered are for --batch").WithHint("give --batch FILE, or leave them out")
	case o.workers < 0:
		return sandbox.Errorf(sandbox.Invalid, "--workers %d is out of range", o.workers).WithHint("it takes at least 1")
	case o.resume && o.output == "":
		return sandbox.Errorf(sandbox.Invalid, "--resume without --output").WithHint("give the file that has the results")
	}
	return nil
}

// open opens the lines, and counts those with something in them, where they are a file; else total is 0.
func (o *batchOptions) open(stdin io.Reader) (in io.ReadCloser, total int, err error) {
	if o.file == "-" {
		return io.NopCloser(stdin), 0, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, 0, missing(o.file, err)
	}
	for line, err := range batch.Lines(f) {
		if err != nil && !errors.Is(err, batch.ErrLongLine) {
			return nil, 0, errors.Join(sandbox.Errorf(sandbox.Invalid, "%s: %w", o.file, err).WithHint("give a file, or - and a pipe"), f.Close())
		}
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			total++
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, 0, errors.Join(sandbox.Errorf(sandbox.Invalid, "%s: %w", o.file, err).WithHint("give a file, or - and a pipe"), f.Close())
	}
	return f, total, nil
}

// standing is what a file of results has already.
type standing struct {
	ids           map[batch.Name]bool
	count, passed int
}

// openOutput opens what results are written to. To resume, it keeps whole lines
// that have a result: half a line, and lines that have an error, are taken out,
// and what they are of is done again.
func (o *batchOptions) openOutput(stdout io.Writer) (io.WriteCloser, standing, error) {
	stand := standing{ids: map[batch.Name]bool{}}
	if o.output == "" {
		return unclosed{stdout}, stand, nil
	}
	old, err := os.ReadFile(o.output)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, stand, missing(o.output, err)
	case !o.resume && len(old) > 0:
		return nil, stand, sandbox.Errorf(sandbox.Conflict, "%s has something in it", o.output).WithHint("add --resume to go on with it, or remove it")
	}
	kept, err := stand.keep(old)
	if err != nil {
		return nil, stand, sandbox.Errorf(sandbox.Invalid, "%s: %w", o.output, err).WithHint("--output has to name a file of results")
	}
	if !bytes.Equal(kept, old) {
		if err := replaceFile(o.output, kept); err != nil {
			return nil, stand, err
		}
	}
	f, err := os.OpenFile(o.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, stand, sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the folder of --output")
	}
	return f, stand, nil
}

// keep returns the lines that stay, and notes whose they are.
func (s *standing) keep(old []byte) ([]byte, error) {
	kept := make([]byte, 0, len(old))
	number := 0
	for line := range bytes.Lines(old) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // half a line, the last
		}
		var j struct {
			ID        batch.Name      `json:"id"`
			AllPassed bool            `json:"all_passed"`
			Error     json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &j); err != nil || j.ID == "" {
			return nil, fmt.Errorf("line %d is no result", number)
		}
		if j.Error != nil || s.ids[j.ID] {
			continue
		}
		s.ids[j.ID] = true
		s.count++
		if j.AllPassed {
			s.passed++
		}
		kept = append(kept, line...)
	}
	return kept, nil
}

// replaceFile writes a file such that there is the old one or the new one.
func replaceFile(name string, text []byte) error {
	wrong := func(err error) error {
		return sandbox.Errorf(sandbox.Invalid, "%w", err).WithHint("check the folder of --output")
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".results-*")
	if err != nil {
		return wrong(err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(wrong(err), os.Remove(f.Name()))
	}
	return nil
}

// unclosed is a writer that is another's to close.
type unclosed struct{ io.Writer }

// Close implements [io.Closer].
func (unclosed) Close() error { return nil }

// writeLine writes a result in one call, so that only a death can leave half.
func writeLine(w io.Writer, result any) error {
	b, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	return nil
}

// batchBar shows on a terminal how far a batch is; elsewhere nothing.
type batchBar struct {
	pool *mpb.Progress
	bar  *mpb.Bar
}

// newBatchBar begins one that counts things of a name. A total of 0 is not known.
func newBatchBar(w io.Writer, of string, total int) *batchBar {
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return &batchBar{}
	}
	pool := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
	name := mpb.PrependDecorators(decor.Name(of))
	if total == 0 {
		return &batchBar{pool, pool.AddSpinner(0, name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.CurrentNoUnit("%d")))}
	}
	return &batchBar{pool, pool.AddBar(int64(total), name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.CountersNoUnit("%d of %d")))}
}

func (b *batchBar) add(n int) {
	if b.bar != nil {
		b.bar.IncrBy(n)
	}
}

func (b *batchBar) close() {
	if b.bar != nil {
		b.bar.Abort(true)
		b.pool.Wait()
	}
}
