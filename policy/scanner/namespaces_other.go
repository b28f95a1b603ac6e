//go:build !linux

package scanner

import "syscall"

// attempts: only Linux has namespaces.
func attempts() []*syscall.SysProcAttr { return []*syscall.SysProcAttr{{}} }

// separate reports whether an attempt takes namespaces, which no other system has.
func separate(*syscall.SysProcAttr) bool { return false }
