package bridge

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"github.com/caisson-dev/caisson/sandbox"
)

// maxDiff bounds the texts that are compared, in bytes.
const maxDiff = 1 << 20

// Diffs reads changes as differences. The contents are those that were kept:
// what the workspace holds now does not count.
func (b *Book) Diffs(ctx context.Context, changes []sandbox.FileChange) ([]sandbox.FileDiff, error) {
	out := make([]sandbox.FileDiff, 0, len(changes))
	for _, c := range changes {
		d := sandbox.FileDiff{FileChange: c}
		if err := b.fill(ctx, &d); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

func (b *Book) fill(ctx context.Context, d *sandbox.FileDiff) error {
	before, after := d.Before, d.After
	switch {
	case before.Kind == sandbox.KindLink || after.Kind == sandbox.KindLink:
		return compareTexts(d, linkText(before), linkText(after))
	case before.Kind != sandbox.KindFile && after.Kind != sandbox.KindFile, before.SHA256 == after.SHA256 && before.SHA256 != "":
		return nil
	case before.Unread() || after.Unread():
		d.Note = "not read"
		return nil
	case before.Size > maxDiff || after.Size > maxDiff:
		d.Note = "too large"
		return nil
	case isBinary(before) || isBinary(after):
		d.Note = "binary"
		return nil
	}
	var texts [2]string
	for i, s := range []sandbox.FileState{before, after} {
		if s.Kind != sandbox.KindFile {
			continue
		}
		data, err := b.Content(ctx, s.SHA256)
		if err != nil {
			d.Note = "not kept"
			return ctx.Err()
		}
		texts[i] = string(data)
	}
	return compareTexts(d, texts[0], texts[1])
}

// isBinary reports whether a file is known to be no text.
func isBinary(s sandbox.FileState) bool {
	return s.Kind == sandbox.KindFile && !s.Text && s.SHA256 != ""
}

func linkText(s sandbox.FileState) string {
	if s.Kind != sandbox.KindLink {
		return ""
	}
	return string(s.Target)
}

func compareTexts(d *sandbox.FileDiff, before, after string) error {
	u, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return sandbox.Errorf(sandbox.Internal, "compare %q: %w", d.Path, err)
	}
	// Its head is written by who shows it: names may be odd.
	if at := strings.Index(u, "@@"); at >= 0 {
		d.Unified = u[at:]
	}
	for line := range strings.Lines(d.Unified) {
		switch line[0] {
		case '+':
			d.Added++
		case '-':
			d.Removed++
		}
	}
	return nil
}

// emptySum is the hash of nothing, which is not kept.
const emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// Content returns a content by its hash. Errors: NotFound where it was not
// kept.
func (b *Book) Content(ctx context.Context, sum string) ([]byte, error) {
	if sum == emptySum {
		return nil, nil
	}
	places, err := b.Ledger.Find(ctx, []string{sum})
	if err != nil {
		return nil, err
	}
	place, ok := places[sum]
	if !ok {
		return nil, sandbox.Errorf(sandbox.NotFound, "the content %s was not kept", shortSum(sum))
	}
	data, err := b.Packs.read(place, sum)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.NotFound, "the content %s: %w", shortSum(sum), err)
	}
	return bytes.Clone(data), nil
}

func shortSum(sum string) string { return fmt.Sprintf("%.12s", sum) }
