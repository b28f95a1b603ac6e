package packed_test

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/internal/packed"
)

var (
	ints  = []int{0, 1, 127, 128, 1<<31 - 1}
	texts = []string{"", "a", "two\nlines", string(make([]byte, 300))}
)

func whole() []byte {
	return packed.AppendText(packed.AppendTexts(packed.AppendInts(packed.AppendInt(nil, 300), ints), texts), []byte("end"))
}

func TestReadsWhatWasAppended(t *testing.T) {
	r := packed.NewReader(string(whole()))
	if n := r.Int(); n != 300 {
		t.Errorf("got %d", n)
	}
	if got := r.Ints(); !slices.Equal(got, ints) {
		t.Errorf("got %v", got)
	}
	if got := r.Texts(); !slices.Equal(got, texts) {
		t.Errorf("got %q", got)
	}
	if got := r.Text(); got != "end" {
		t.Errorf("got %q", got)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestTellsWhatIsMissing cuts it everywhere, and puts something behind it.
func TestTellsWhatIsMissing(t *testing.T) {
	all := whole()
	for n := range len(all) + 2 {
		if n == len(all) {
			continue
		}
		r := packed.NewReader(string(append(slices.Clone(all), 0)[:n]))
		r.Int()
		r.Ints()
		r.Texts()
		r.Text()
		if r.Close() == nil {
			t.Errorf("%d of %d bytes are taken for all", n, len(all))
		}
	}
}

// FuzzReader: whatever is read, no more is given than there was.
func FuzzReader(f *testing.F) {
	f.Add(string(whole()))
	f.Add("\xff\xff\xff\xff\x0f")
	f.Add("\xff\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, s string) {
		r := packed.NewReader(s)
		given := 0
		for range 16 {
			r.Int()
			given += len(r.Ints())
			for _, text := range r.Texts() {
				given += len(text)
			}
			given += len(r.Text())
		}
		if given > len(s) {
			t.Errorf("%d are given of %d bytes", given, len(s))
		}
	})
}
