package images

import "syscall"

// dieWithUs has what is started end with the thread that started it.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
