package e2b

import "time"

// The messages of the data plane, in the form that Protocol Buffers have in JSON:
// bytes in base64, enums by name, 64 bits as text. Of a message's variants one is
// not nil.
type (
	empty struct{}

	selector struct {
		PID *uint32 `json:"pid,omitempty"`
		Tag *string `json:"tag,omitempty"`
	}
	processConfig struct {
		Cmd  string            `json:"cmd"`
		Args []string          `json:"args,omitempty"`
		Envs map[string]string `json:"envs,omitempty"`
		Cwd  *string           `json:"cwd,omitempty"`
	}
	ptySize struct {
		Cols uint32 `json:"cols"`
		Rows uint32 `json:"rows"`
	}
	pty struct {
		Size *ptySize `json:"size,omitempty"`
	}
	startRequest struct {
		Process *processConfig `json:"process"`
		PTY     *pty           `json:"pty,omitempty"`
		Tag     *string        `json:"tag,omitempty"`
		Stdin   *bool          `json:"stdin,omitempty"`
	}
	selectRequest struct {
		Process *selector `json:"process"`
	}
	updateRequest struct {
		Process *selector `json:"process"`
		PTY     *pty      `json:"pty,omitempty"`
	}
	input struct {
		Stdin []byte `json:"stdin,omitempty"`
		PTY   []byte `json:"pty,omitempty"`
	}
	inputRequest struct {
		Process *selector `json:"process"`
		Input   *input    `json:"input"`
	}
	signalRequest struct {
		Process *selector `json:"process"`
		Signal  signal    `json:"signal"`
	}

	processInfo struct {
		Config processConfig `json:"config"`
		PID    uint32        `json:"pid"`
		Tag    *string       `json:"tag,omitempty"`
	}
	processList struct {
		Processes []processInfo `json:"processes"`
	}

	started struct {
		PID uint32 `json:"pid"`
	}
	output struct {
		Stdout []byte `json:"stdout,omitempty"`
		Stderr []byte `json:"stderr,omitempty"`
		PTY    []byte `json:"pty,omitempty"`
	}
	ended struct {
		ExitCode int32   `json:"exitCode"`
		Exited   bool    `json:"exited"`
		Status   string  `json:"status"`
		Error    *string `json:"error,omitempty"`
	}
	event struct {
		Start     *started `json:"start,omitempty"`
		Data      *output  `json:"data,omitempty"`
		End       *ended   `json:"end,omitempty"`
		KeepAlive *empty   `json:"keepalive,omitempty"`
	}
	processEvent struct {
		Event event `json:"event"`
	}

	pathRequest struct {
		Path string `json:"path"`
	}
	listRequest struct {
		Path  string `json:"path"`
		Depth uint32 `json:"depth"`
	}
	moveRequest struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
	}
	entry struct {
		Name          string            `json:"name"`
		Type          string            `json:"type"`
		Path          string            `json:"path"`
		Size          int64             `json:"size,string"`
		Mode          uint32            `json:"mode"`
		Permissions   string            `json:"permissions"`
		Owner         string            `json:"owner"`
		Group         string            `json:"group"`
		ModifiedTime  time.Time         `json:"modifiedTime"`
		SymlinkTarget *string           `json:"symlinkTarget,omitempty"`
		Metadata      map[string]string `json:"metadata,omitempty"`
	}
	entryAnswer struct {
		Entry entry `json:"entry"`
	}
	entriesAnswer struct {
		Entries []entry `json:"entries"`
	}

	watchRequest struct {
		Path         string `json:"path"`
		Recursive    bool   `json:"recursive"`
		IncludeEntry bool   `json:"includeEntry"`
	}
	fileEvent struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Entry *entry `json:"entry,omitempty"`
	}
	watchEvent struct {
		Start      *empty     `json:"start,omitempty"`
		Filesystem *fileEvent `json:"filesystem,omitempty"`
		KeepAlive  *empty     `json:"keepalive,omitempty"`
	}
)
