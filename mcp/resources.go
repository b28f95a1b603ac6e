package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// scheme is that of resources:
//
//	caisson://sessions/NAME/files/PATH   a file, or what is in a folder
//	caisson://sessions/NAME/changes      its records of changes
//	caisson://sessions/NAME/audit        what happened to it
//	caisson://outputs/EXEC/NAME          the whole of an output, or an artifact
const scheme = "caisson"

const (
	typeJSON   = "application/json"
	mostEvents = 1000
)

func resources(s *Server) {
	for _, t := range []mcp.ResourceTemplate{
		{Name: "session_files", Title: "A session's workspace", URITemplate: "caisson://sessions/{session}/files", Description: "the files of a session's workspace", MIMEType: typeJSON},
		{Name: "session_file", Title: "A file of a session", URITemplate: "caisson://sessions/{session}/files/{+path}", Description: "a file of a session's workspace, or what is in a folder of it"},
		{Name: "session_changes", Title: "A session's changes", URITemplate: "caisson://sessions/{session}/changes", Description: "what each run changed in the workspace", MIMEType: typeJSON},
		{Name: "session_audit", Title: "A session's audit", URITemplate: "caisson://sessions/{session}/audit", Description: "the newest events of the audit that are about a session", MIMEType: typeJSON},
		{Name: "output", Title: "An output of a run", URITemplate: "caisson://outputs/{exec}/{+name}", Description: "the whole of an output that was cut in an answer, or an artifact; the newest are kept"},
	} {
		s.mcp.AddResourceTemplate(&t, s.readResource)
	}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if all, ok := res.(*mcp.ListResourcesResult); ok && err == nil {
				err = s.listSessions(ctx, all)
			}
			return res, err
		}
	})
}

// listSessions lists what there is to read of each session.
func (s *Server) listSessions(ctx context.Context, all *mcp.ListResourcesResult) error {
	sessions, err := s.svc.Sessions(ctx, sandbox.SessionFilter{})
	if err != nil {
		return err
	}
	for _, one := range sessions {
		for _, what := range []string{"files", "changes", "audit"} {
			uri := url.URL{Scheme: scheme, Host: "sessions", Path: "/" + one.Name + "/" + what}
			all.Resources = append(all.Resources, &mcp.Resource{URI: uri.String(), Name: one.Name + " " + what, Description: "the " + what + " of session " + one.Name, MIMEType: typeJSON})
		}
	}
	return nil
}

func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	u, err := url.Parse(req.Params.URI)
	if err != nil || u.Scheme != scheme {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	of, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	what, name, _ := strings.Cut(rest, "/")
	var res *mcp.ReadResourceResult
	switch {
	case u.Host == "outputs":
		k, ok := s.shelf.get(sandbox.CallerFrom(ctx), sandbox.ID(of), rest)
		if !ok {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return contents(k.media, k.data), nil
	case u.Host == "sessions" && what == "files":
		res, err = s.file(ctx, of, name)
	case u.Host == "sessions" && what == "changes":
		res, err = asJSON(listed(s.svc.Changes(ctx, of, api.ChangesOptions{})))
	case u.Host == "sessions" && what == "audit":
		res, err = asJSON(s.audit(ctx, of))
	default:
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if errors.Is(err, sandbox.NotFound) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	return res, err
}

func asJSON(v any, err error) (*mcp.ReadResourceResult, error) {
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(v)
	return contents(typeJSON, b), err
}

// file reads a file of a workspace whole, or lists a folder.
func (s *Server) file(ctx context.Context, session, name string) (*mcp.ReadResourceResult, error) {
	files, err := s.svc.Files(ctx, session)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = "."
	}
	st, err := files.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	if st.Type == "dir" {
		return asJSON(s.tree(ctx, session, name, 1))
	}
	if st.Size > mostFile {
		return nil, sandbox.Errorf(sandbox.Exhausted, "%s has %d bytes; the tool file_read reads a part of it", name, st.Size)
	}
	var b bytes.Buffer
	if _, err := files.Read(ctx, name, 0, mostFile, &b); err != nil {
		return nil, err
	}
	return contents(mediaOf(name, b.Bytes()), b.Bytes()), nil
}

// audit is the newest of what happened to a session.
func (s *Server) audit(ctx context.Context, session string) (any, error) {
	if _, err := s.svc.Session(ctx, session); err != nil {
		return nil, err
	}
	var events []sandbox.Event
	for e, err := range s.svc.Events(ctx, sandbox.EventFilter{Session: session}) {
		if err != nil {
			return nil, err
		}
		if events = append(events, e); len(events) > mostEvents {
			events = events[1:]
		}
	}
	return listed(events, nil)
}

// mediaOf is the media type of a file by its name, or else by its content.
func mediaOf(name string, b []byte) string {
	if byName := mime.TypeByExtension(path.Ext(name)); byName != "" {
		return byName
	}
	return http.DetectContentType(b[:min(len(b), 512)])
}
