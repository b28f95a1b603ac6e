package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/sandbox"
)

// OfFile names an entry of a workspace. Paths stand in queries, where they may
// hold any byte.
type OfFile struct {
	InSession
	Path string `query:"path" doc:"below the workspace; \".\" is the workspace itself"`
}

func files(s *Server) {
	handleNone(s, call{"Files", get, below("/files"), "See to it that a workspace can be asked", 0}, func(ctx context.Context, in *InSession) error {
		_, err := s.svc.Files(ctx, in.Session)
		return err
	})
	handle(s, call{"FilesStat", get, below("/files/stat"), "One entry", 0}, func(ctx context.Context, in *OfFile) (info sandbox.FileInfo, err error) {
		err = s.within(ctx, in.Session, func(f api.Files) (err error) { info, err = f.Stat(ctx, in.Path); return err })
		return info, err
	})
	handleNone(s, call{"FilesPut", post, below("/files"), "Write files by their contents", 0}, func(ctx context.Context, in *struct {
		InSession
		Body wire.Files
	}) error {
		return s.within(ctx, in.Session, func(f api.Files) error { return f.Put(ctx, in.Body.Files, sandbox.Local{}) })
	})
	handleNone(s, call{"FilesMkdir", post, below("/files/mkdir"), "Make a folder", 0}, func(ctx context.Context, in *struct {
		OfFile
		Mode octal `query:"mode" doc:"permissions, octal"`
	}) error {
		return s.within(ctx, in.Session, func(f api.Files) error { return f.Mkdir(ctx, in.Path, in.Mode.bits()) })
	})
	handleNone(s, call{"FilesSetAttributes", put, below("/files/attributes"), "Replace an entry's extended attributes", 0}, func(ctx context.Context, in *struct {
		OfFile
		Body wire.Attributes
	}) error {
		return s.within(ctx, in.Session, func(f api.Files) error { return f.SetAttributes(ctx, in.Path, in.Body.Attributes) })
	})
	handleNone(s, call{"FilesMove", post, below("/files/move"), "Move an entry", 0}, func(ctx context.Context, in *struct {
		InSession
		From string `query:"from" required:"true"`
		To   string `query:"to" required:"true"`
	}) error {
		return s.within(ctx, in.Session, func(f api.Files) error { return f.Move(ctx, in.From, in.To) })
	})
	handleNone(s, call{"FilesRemove", del, below("/files"), "Remove an entry", 0}, func(ctx context.Context, in *struct {
		OfFile
		Recursive bool `query:"recursive" doc:"with all that is in it"`
	}) error {
		return s.within(ctx, in.Session, func(f api.Files) error { return f.Remove(ctx, in.Path, in.Recursive) })
	})
	listed(s)
	contents(s)
	archives(s)
}

// within does something in a session's workspace.
func (s *Server) within(ctx context.Context, session string, do func(api.Files) error) error {
	f, err := s.svc.Files(ctx, session)
	if err != nil {
		return err
	}
	return do(f)
}

// octal are permissions as they are written. "" is 0.
type octal string

func (o octal) bits() uint32 {
	n, _ := strconv.ParseUint(string(o), 8, 32) // its schema has it right
	return uint32(n)
}

// Schema implements [huma.SchemaProvider].
func (octal) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^[0-7]{0,4}$", PatternDescription: "octal digits"}
}

func listed(s *Server) {
	both := map[string]*huma.Schema{typeJSON: schemaOf[wire.Page[sandbox.FileInfo]](s), typeEvents: eventSchema()}
	handleRaw(s, call{"FilesTree", get, below("/files/tree"), "What is below a folder", 0}, both, func(in *struct {
		OfFile
		Accept string `header:"Accept"`
		Depth  int    `query:"depth" doc:"0 is all of it"`
	}, w http.ResponseWriter, r *http.Request) error {
		return s.within(r.Context(), in.Session, func(f api.Files) error {
			seq := f.Tree(r.Context(), in.Path, in.Depth)
			if wantsEvents(in.Accept) {
				return sendAll(s, w, r, wire.EventFile, nil, seq)
			}
			var list []sandbox.FileInfo
			for info, err := range seq {
				if err != nil {
					return err
				}
				list = append(list, info)
			}
			return writeJSON(w, all(list))
		})
	})
	handleRaw(s, call{"FilesWatch", get, below("/files/watch"), "Changes as they are made, as events", 0}, map[string]*huma.Schema{typeEvents: eventSchema()}, func(in *struct {
		OfFile
		Recursive bool `query:"recursive"`
	}, w http.ResponseWriter, r *http.Request) error {
		r, stop := s.tillEnd(r)
		defer stop()
		return s.within(r.Context(), in.Session, func(f api.Files) error {
			return sendAll(s, w, r, wire.EventFile, nil, f.Watch(r.Context(), in.Path, in.Recursive))
		})
	})
}

func contents(s *Server) {
	bytes := map[string]*huma.Schema{typeBytes: {Type: huma.TypeString, Format: "binary"}}
	handleRaw(s, call{"FilesRead", get, below("/files/content"), "A file's content; Range, or offset and length, take a part", 0}, bytes, func(in *struct {
		OfFile
		Range  string `header:"Range" doc:"bytes=FIRST-LAST or bytes=FIRST-"`
		Offset int64  `query:"offset"`
		Length int64  `query:"length" doc:"0 is the rest"`
	}, w http.ResponseWriter, r *http.Request) error {
		return s.within(r.Context(), in.Session, func(f api.Files) error {
			status := http.StatusOK
			if first, length, ok := byteRange(in.Range); ok && in.Offset == 0 && in.Length == 0 {
				info, err := f.Stat(r.Context(), in.Path)
				if err != nil {
					return err
				}
				if first >= info.Size {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size))
					return ill(r.Context(), http.StatusRequestedRangeNotSatisfiable, "ask for a part that is there", "the file has %d bytes", info.Size)
				}
				if length <= 0 || length > info.Size-first {
					length = info.Size - first
				}
				in.Offset, in.Length, status = first, length, http.StatusPartialContent
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, first+length-1, info.Size))
			}
			return s.sendBytes(w, r, typeBytes, status, func(to io.Writer) (any, error) {
				n, err := f.Read(r.Context(), in.Path, in.Offset, in.Length, to)
				return wire.Taken{Bytes: n}, err
			})
		})
	})
	takes(s, call{"FilesWrite", put, below("/files/content"), "Write a file, which appears whole or not at all", 0}, typeBytes, func(in *struct {
		OfFile
		Mode octal `query:"mode" doc:"permissions, octal; without it those of a file that is there, or 0644"`
	}, r *http.Request) (wire.Taken, error) {
		var n int64
		err := s.within(r.Context(), in.Session, func(f api.Files) (err error) {
			n, err = f.Write(r.Context(), in.Path, in.Mode.bits(), r.Body)
			return err
		})
		return wire.Taken{Bytes: n}, err
	})
}

// byteRange reads a Range of one part that begins somewhere; others are as if they
// were not there, as HTTP has it. A length of 0 is the rest.
func byteRange(header string) (first, length int64, ok bool) {
	from, to, ok := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	first, err := strconv.ParseInt(from, 10, 64)
	if !ok || err != nil || first < 0 || !strings.HasPrefix(header, "bytes=") {
		return 0, 0, false
	}
	if to == "" {
		return first, 0, true
	}
	last, err := strconv.ParseInt(to, 10, 64)
	return first, last - first + 1, err == nil && last >= first
}

const typeTar = "application/x-tar"

func archives(s *Server) {
	handleRaw(s, call{"FilesGet", get, below("/files/tar"), "A folder, or some paths below it, as a tar stream", 0}, map[string]*huma.Schema{typeTar: {Type: huma.TypeString, Format: "binary"}}, func(in *struct {
		InSession
		Dir  string   `query:"dir"`
		Path []string `query:"path,explode"`
	}, w http.ResponseWriter, r *http.Request) error {
		return s.within(r.Context(), in.Session, func(f api.Files) error {
			return s.sendBytes(w, r, typeTar, http.StatusOK, func(to io.Writer) (any, error) { return f.Get(r.Context(), in.Dir, in.Path, to) })
		})
	})
	takes(s, call{"FilesPutTar", put, below("/files/tar"), "Unpack a tar stream below a folder", 0}, typeTar, func(in *struct {
		InSession
		Dir string `query:"dir"`
	}, r *http.Request) (moved sandbox.Moved, err error) {
		err = s.within(r.Context(), in.Session, func(f api.Files) (err error) { moved, err = f.PutTar(r.Context(), in.Dir, r.Body); return err })
		return moved, err
	})
}

// takes registers a call that reads bytes of any length.
func takes[I, O any](s *Server, c call, kind string, f func(in *I, r *http.Request) (O, error)) {
	handleRaw(s, c, map[string]*huma.Schema{typeJSON: schemaOf[O](s)}, func(in *I, w http.ResponseWriter, r *http.Request) error {
		out, err := f(in, r)
		if err != nil {
			return problemOf(r.Context(), err, out)
		}
		return writeJSON(w, out)
	})
	s.api.OpenAPI().Paths[c.path].Put.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
}

// sendBytes answers with bytes of any length. What came of it, and what went
// wrong behind the first byte, stand in trailers for who takes them; for others
// the connection is cut, so that nobody takes a part for the whole.
func (s *Server) sendBytes(w http.ResponseWriter, r *http.Request, kind string, status int, f func(io.Writer) (any, error)) error {
	w.Header().Set("Trailer", wire.TrailerResult+", "+wire.TrailerProblem)
	lazy := &lazyWriter{w: w, status: status, kind: kind}
	out, err := f(lazy)
	if err != nil && !lazy.begun {
		w.Header().Del("Trailer")
		w.Header().Del("Content-Range")
		return problemOf(r.Context(), err, out)
	}
	lazy.begin()
	if err != nil && r.Header.Get("TE") != "trailers" {
		panic(http.ErrAbortHandler)
	}
	result, _ := json.Marshal(out) // plain figures
	w.Header().Set(wire.TrailerResult, string(result))
	if err != nil {
		text, _ := json.Marshal(problemOf(r.Context(), err, nil)) // texts and numbers
		w.Header().Set(wire.TrailerProblem, string(text))
	}
	return nil
}

// lazyWriter begins its answer with the first byte.
type lazyWriter struct {
	w      http.ResponseWriter
	status int
	kind   string
	begun  bool
}

func (l *lazyWriter) begin() {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", l.kind)
		l.w.WriteHeader(l.status)
	}
}

// Write implements [io.Writer].
func (l *lazyWriter) Write(p []byte) (int, error) {
	l.begin()
	return l.w.Write(p)
}
