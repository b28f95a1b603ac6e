package sandbox

import (
	"encoding/json"
	"io"
	"os"
)

// DefaultArtifacts is what is collected of a run that names nothing: what it has
// put there.
const DefaultArtifacts = "artifacts/**"

// MaxArtifacts bounds the contents of artifacts in one [Result], all together.
const MaxArtifacts = 8 * MiB

// AnswerPath is the path of the artifact that a program has handed back by itself: see
// [Run.Answer]. No file of the workspace has it.
const AnswerPath = "/answer"

// Artifact is a file that a run has left to be collected.
type Artifact struct {
	Path string // below the workspace, or [AnswerPath]
	Size int64
	Type string // media type, by the name or, failing that, the content; "" is not known
	// Data is the content, unless it was handed on or left: see [Streams].
	Data []byte
	// Left says why the content is not there; "" where it is, or was handed on.
	Left string
	// Link is where a server has the content; "" where it has none.
	Link string
}

// artifactJSON is an Artifact for users.
type artifactJSON struct {
	Path      string  `json:"path"`
	PathBytes []byte  `json:"path_base64,omitempty"`
	Size      int64   `json:"size"`
	Type      string  `json:"type,omitempty"`
	Text      *string `json:"data,omitempty"`
	Base64    *string `json:"data_base64,omitempty"`
	Left      string  `json:"left,omitempty"`
	Link      string  `json:"link,omitempty"`
}

// MarshalJSON writes contents that are not UTF-8 in base64 under a name of their
// own.
func (a Artifact) MarshalJSON() ([]byte, error) {
	j := artifactJSON{Size: a.Size, Type: a.Type, Left: a.Left, Link: a.Link}
	j.Path, j.PathBytes = nameJSON(a.Path)
	if a.Data != nil {
		j.Text, j.Base64 = textOrBase64(a.Data)
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Artifact) UnmarshalJSON(b []byte) error {
	var j artifactJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	data, err := fromTextOrBase64(j.Text, j.Base64)
	if data == nil && j.Text != nil {
		data = []byte{}
	}
	*a = Artifact{Path: j.Path, Size: j.Size, Type: j.Type, Left: j.Left, Link: j.Link, Data: data}
	if j.PathBytes != nil {
		a.Path = string(j.PathBytes)
	}
	return err
}

// ArtifactTaker says where an artifact's content goes: nil is nowhere. What it
// returns is closed. The path comes from the sandbox.
type ArtifactTaker func(a Artifact) (io.WriteCloser, error)

// AnswerTaker takes the content of a large answer as it lies in the memory of this
// machine, of a size, and reports whether it did: the file can be changed by nobody any
// more, and is closed after the call. One that is not taken is handed on as an artifact.
type AnswerTaker func(f *os.File, size int64) (taken bool, err error)
