package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/caisson-dev/caisson/sandbox"
)

// Progress shows long steps: as bars on a terminal, as plain lines elsewhere.
// It is safe for concurrent use. Its owner closes it.
type Progress struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	mu   sync.Mutex
	pool *mpb.Progress       // nil while nothing is shown
	bars map[string]*mpb.Bar // by reference
	last map[string]time.Time
}

// NewProgress shows progress on out.
func NewProgress(out io.Writer) *Progress {
	f, ok := out.(*os.File)
	return &Progress{
		out: out, terminal: ok && term.IsTerminal(int(f.Fd())), now: time.Now,
		bars: map[string]*mpb.Bar{}, last: map[string]time.Time{},
	}
}

// everySoOften is how often mere numbers make a line where there is no terminal.
const everySoOften = 5 * time.Second

// Show takes in one piece of news.
func (p *Progress) Show(news sandbox.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		p.drawLocked(news)
		return
	}
	if news.Text == "" && !news.Done {
		if p.last[news.Ref].IsZero() {
			p.last[news.Ref] = p.now()
		}
		if p.now().Sub(p.last[news.Ref]) < everySoOften {
			return
		}
		p.last[news.Ref] = p.now()
		news.Text = news.Current.Human() + " of " + news.Total.Human()
	}
	p.lineLocked(p.out, news)
}

// lineLocked writes a line of text. That nobody can read it is no reason to
// stop.
func (p *Progress) lineLocked(out io.Writer, news sandbox.Progress) {
	if news.Text != "" {
		_, _ = fmt.Fprintf(out, "%s: %s\n", visible(news.Ref), visible(news.Text))
	}
}

// drawLocked moves the bar of what the news is about, with its text above.
func (p *Progress) drawLocked(news sandbox.Progress) {
	bar := p.bars[news.Ref]
	if news.Done {
		if bar != nil {
			bar.Abort(true)
			bar.Wait()
			delete(p.bars, news.Ref)
		}
		if len(p.bars) == 0 && p.pool != nil {
			p.pool.Wait()
			p.pool = nil
		}
	} else if bar == nil {
		if p.pool == nil {
			p.pool = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
		}
		bar = newBar(p.pool, news)
		p.bars[news.Ref] = bar
	}
	if bar != nil && news.Total > 0 {
		bar.SetTotal(int64(news.Total), false)
		bar.SetCurrent(int64(min(news.Current, news.Total-1))) // full is what Done says
	}
	if p.pool != nil {
		p.lineLocked(p.pool, news)
		return
	}
	p.lineLocked(p.out, news)
}

// newBar is a bar where there is something to count, else a sign of life.
func newBar(pool *mpb.Progress, news sandbox.Progress) *mpb.Bar {
	name := mpb.PrependDecorators(decor.Name(visible(news.Ref) + " "))
	if news.Total > 0 {
		return pool.AddBar(int64(news.Total), name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.CountersKibiByte("% .1f of % .1f")))
	}
	return pool.AddSpinner(0, name, mpb.BarRemoveOnComplete(), mpb.AppendDecorators(decor.Elapsed(decor.ET_STYLE_GO)))
}

// Close takes away what is still drawn. It is idempotent.
func (p *Progress) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref, bar := range p.bars {
		bar.Abort(true)
		delete(p.bars, ref)
	}
	if p.pool != nil {
		p.pool.Wait()
		p.pool = nil
	}
	return nil
}
