package mcp

import (
	"bytes"
	"context"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/sandbox"
)

// Bounds of files in answers.
const (
	shownFile    = 64 << 10 // that a tool reads at once, where nobody says more
	mostFile     = 8 << 20  // at most
	shownEntries = 1000     // of a folder
)

type (
	ofFile struct {
		ofSession
		Path string `json:"path" jsonschema:"relative to the workspace"`
	}
	reading struct {
		ofFile
		Offset int64 `json:"offset,omitempty" jsonschema:"byte to begin at"`
		Length int64 `json:"length,omitempty" jsonschema:"bytes to read: 65536 if not given, at most 8388608"`
	}
	// read is a part of a file.
	read struct {
		Path string `json:"path"`
		Size int64  `json:"size"` // of the whole file
		Next int64  `json:"next_offset,omitempty"`
		Text string `json:"text,omitempty"`
		Data []byte `json:"data_base64,omitempty"` // of what is no text
	}
	writing struct {
		ofSession
		inFile
		Mode uint32 `json:"mode,omitempty" jsonschema:"permission bits as a decimal number; 420 (octal 644) if not given"`
	}
	listing struct {
		ofSession
		Path  string `json:"path,omitempty" jsonschema:"the workspace if not given"`
		Depth int    `json:"depth,omitempty" jsonschema:"how deep; 1 if not given"`
	}
	// tree is a folder.
	tree struct {
		Items []sandbox.FileInfo `json:"items"`
		More  bool               `json:"more,omitempty"` // there are more than are listed
	}
	removing struct {
		ofFile
		Recursive bool `json:"recursive,omitempty" jsonschema:"a folder with all that is in it"`
	}
	written struct {
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
	}
)

func fileTools(s *Server) {
	add(s, about{name: "file_read", title: "Read a file", text: "Read a file of a session's workspace, or a part of it.", reads: true}, s.readFile)
	add(s, about{name: "file_write", title: "Write a file", text: "Write a file into a session's workspace, in the place of what is there.", harms: true},
		func(ctx context.Context, in writing) (any, error) {
			files, err := s.svc.Files(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			mode := in.Mode
			if mode == 0 {
				mode = 0o644
			}
			n, err := files.Write(ctx, in.Path, mode, bytes.NewReader(in.content()))
			return written{in.Path, n}, err
		})
	add(s, about{name: "file_list", title: "List files", text: "List a folder of a session's workspace.", reads: true},
		func(ctx context.Context, in listing) (any, error) {
			return s.tree(ctx, in.Session, in.Path, max(in.Depth, 1))
		})
	add(s, about{name: "file_remove", title: "Remove a file", text: "Remove a file or a folder of a session's workspace.", harms: true},
		func(ctx context.Context, in removing) (any, error) {
			files, err := s.svc.Files(ctx, in.Session)
			if err != nil {
				return nil, err
			}
			return done{true}, files.Remove(ctx, in.Path, in.Recursive)
		})
}

func (s *Server) readFile(ctx context.Context, in reading) (any, error) {
	if in.Length == 0 {
		in.Length = shownFile
	}
	if in.Length < 0 || in.Length > mostFile || in.Offset < 0 {
		return nil, sandbox.Errorf(sandbox.Invalid, "cannot read %d bytes from %d on", in.Length, in.Offset).WithHint("read at most %d bytes at once", mostFile)
	}
	files, err := s.svc.Files(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := files.Read(ctx, in.Path, in.Offset, in.Length, &b); err != nil {
		return nil, err
	}
	st, err := files.Stat(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	r := read{Path: in.Path, Size: st.Size}
	if end := in.Offset + int64(b.Len()); end < st.Size && b.Len() > 0 {
		r.Next = end
	}
	if utf8.Valid(b.Bytes()) {
		r.Text = b.String()
	} else {
		r.Data = b.Bytes()
	}
	return r, nil
}

// tree lists a folder.
func (s *Server) tree(ctx context.Context, session, path string, depth int) (tree, error) {
	t := tree{Items: []sandbox.FileInfo{}}
	files, err := s.svc.Files(ctx, session)
	if err != nil {
		return t, err
	}
	if path == "" {
		path = "."
	}
	for f, err := range files.Tree(ctx, path, depth) {
		if err != nil {
			return t, err
		}
		if len(t.Items) == shownEntries {
			t.More = true
			break
		}
		t.Items = append(t.Items, f)
	}
	return t, nil
}
