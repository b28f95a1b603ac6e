//go:build !linux

package mountns

import (
	"errors"
	"os"
)

var errLinux = errors.New("it takes Linux")

// Clone fails here.
func Clone(string) (*os.File, error) { return nil, errLinux }

// Move fails here.
func Move(int, string, os.FileInfo, *os.File, int) error { return errLinux }
