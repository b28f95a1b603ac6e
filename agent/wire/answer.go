package wire

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Answer asks for what an exec with [Exec].Answer has handed back. It is told once.
type Answer struct {
	ID string `json:"id"` // of the exec
}

// SmallAnswer is how many bytes an answer has at most that comes with its exec's end.
const SmallAnswer = 32 << 10

// AnswerSocket is the socket in the folder that [StagePath] names, by which a program
// hands something back: it connects, sends a byte with one descriptor, of a file that
// is [Sealed], and reads a byte, which says that the file was taken. The first one
// counts. Only processes of the exec are heard.
const AnswerSocket = "answer.sock"

// What fcntl has for files in memory, and the file system that they are of.
const (
	getSeals = 1034
	allSeals = 0xf // of itself, shrinking, growing and writing
	inMemory = 0x01021994
)

// Sealed returns the size of a file in memory that nobody can change any more, whoever
// has it open or mapped: a memfd with all seals. It is an error for anything else, and
// above most bytes.
func Sealed(f *os.File, most int64) (int64, error) {
	fd := f.Fd()
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(fd), &st), unix.Fstatfs(int(fd), &fs)); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int64(fs.Type) != inMemory {
		return 0, errors.New("it is no file in memory")
	}
	if seals, err := unix.FcntlInt(fd, getSeals, 0); err != nil || seals&allSeals != allSeals {
		return 0, errors.New("it can be changed")
	}
	if st.Size > most {
		return 0, fmt.Errorf("it has %d bytes, of at most %d", st.Size, most)
	}
	return st.Size, nil
}
