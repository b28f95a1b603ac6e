package main

import (
	"debug/elf"
	"os"
	"testing"

	"github.com/caisson-dev/caisson/internal/enginetest"
)

// TestBinary: what `make build` makes is small and needs no library of the
// host.
func TestBinary(t *testing.T) {
	path := enginetest.Scanner(t) // built as that one
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(12_000_000); info.Size() > most {
		t.Errorf("%d bytes, at most %d", info.Size(), most)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Skipf("not a program of Linux: %v", err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil || len(libs) > 0 {
		t.Errorf("it is linked with %q, %v", libs, err)
	}
}
