//go:build !linux

package main

// unmapProgram does nothing here.
func unmapProgram() error { return nil }
