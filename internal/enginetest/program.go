package enginetest

import (
	"os"
	"syscall"
)

// WriteProgram writes a file that can be run at once. A process that this one forks
// while the file is written would keep it open, and nobody could run it until that one
// has become another program: none is forked meanwhile.
func WriteProgram(path string, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o755)
}
