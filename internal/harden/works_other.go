//go:build !linux

package harden

import "errors"

// Works reports why the calling process cannot be held here.
func Works() error { return errors.New("it takes Linux") }
