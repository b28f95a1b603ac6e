//go:build !linux

package images

import "syscall"

// dieWithUs cannot be had here, nor is mmdebstrap: assembling needs Linux.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
