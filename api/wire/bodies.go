package wire

import (
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// The bodies of requests and answers that are no types of the vocabulary: the
// plain arguments and values of calls, each by its name.

// Check is a text to be judged.
type Check struct {
	Language string `json:"language"`
	Code     string `json:"code,omitempty"`
	Base64   []byte `json:"code_base64,omitempty"` // in the place of Code
	File     string `json:"file,omitempty"`        // its name in findings
}

// Text is what is judged.
func (c Check) Text() []byte {
	if c.Base64 != nil {
		return c.Base64
	}
	return []byte(c.Code)
}

// Answer is an answer to the question that the path names.
type Answer struct {
	Approve bool   `json:"approve"`
	Always  bool   `json:"always,omitempty"` // for this digest, from now on
	By      string `json:"by,omitempty"`
	Via     string `json:"via,omitempty"` // "" is "api"
	Note    string `json:"note,omitempty"`
}

// To is the answer to a question.
func (a Answer) To(id sandbox.ID) sandbox.ApprovalAnswer {
	if a.Via == "" {
		a.Via = "api"
	}
	return sandbox.ApprovalAnswer{ID: id, Approve: a.Approve, Always: a.Always, By: a.By, Via: a.Via, Note: a.Note}
}

// By names who does something.
type By struct {
	By string `json:"by,omitempty"`
}

// Language is a language's name.
type Language struct {
	Language string `json:"language"`
}

// ImageName names an image, or a language with one.
type ImageName struct {
	Name string `json:"name"`
}

// ImageNames name several.
type ImageNames struct {
	Names []string `json:"names,omitempty"`
}

// MakeImage says which image is made, and how.
type MakeImage struct {
	ImageName
	sandbox.MakeImageOptions
}

// PullImage says which image is pulled, and how.
type PullImage struct {
	ImageName
	sandbox.PullImageOptions
}

// Reason says why something is done.
type Reason struct {
	Reason string `json:"reason"`
}

// Seq is an event's number.
type Seq struct {
	Seq int64 `json:"seq"`
}

// Named names what is made; "" is no name.
type Named struct {
	Name string `json:"name,omitempty"`
}

// Signal is sent to an exec.
type Signal struct {
	Signal int  `json:"signal"`
	All    bool `json:"all,omitempty"` // to everything that it started
}

// Size is a terminal's, in characters.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// PruneImages says what is removed.
type PruneImages struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// Files are written into a workspace together.
type Files struct {
	Files []sandbox.File `json:"files"`
}

// Attributes are what an entry is to have.
type Attributes struct {
	Attributes map[string]string `json:"attributes"`
}

// Attached is what was read of an exec's output in one answer.
type Attached struct {
	sandbox.Attached
	Out Text `json:"stdout"`
	Err Text `json:"stderr"`
}

// Text are bytes: as a text where they are UTF-8.
type Text struct {
	Text   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"`
}

// Set sets the bytes.
func (t *Text) Set(b []byte) {
	*t = Text{Base64: b}
	if text := string(b); utf8.Valid(b) {
		*t = Text{Text: &text}
	}
}

// OpenShell says which shell is opened.
type OpenShell struct {
	Name string `json:"name,omitempty"`
	sandbox.ShellOptions
}
