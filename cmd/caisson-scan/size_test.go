package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// TestBinary: what `make build` makes is small and needs no library of the
// host.
func TestBinary(t *testing.T) {
	path := filepath.Join("..", "..", "bin", "caisson-scan")
	info, err := os.Stat(path)
	if err != nil {
		t.Skip("no bin/caisson-scan: run make build")
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
