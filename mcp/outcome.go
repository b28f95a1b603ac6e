package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// The statuses of an [outcome].
const (
	success  = "success"
	failed   = "error"
	rejected = "rejected"
)

// Bounds of what an answer holds itself.
const (
	shownOutput  = 16 << 10 // of each stream: its head and its tail
	shownChanges = 200
	shownImage   = 1 << 20 // of all pictures
)

// outcome is what came of a run, for a model: what it needs to go on.
type outcome struct {
	Status     string     `json:"status" jsonschema:"success: it exited with 0; error: it failed or could not be run; rejected: policy or a person refused it and nothing ran"`
	ExitCode   int        `json:"exit_code"`
	ExitReason string     `json:"exit_reason" jsonschema:"exited, signal, timeout, canceled, oom, pids, disk, output, denied or infra; empty where nothing was started"`
	Signal     string     `json:"signal,omitempty"`
	Cause      string     `json:"cause,omitempty"`
	Stdout     string     `json:"stdout"`
	Stderr     string     `json:"stderr"`
	Cut        []string   `json:"cut,omitempty" jsonschema:"resources with the whole of streams that are cut here, or are not UTF-8"`
	DurationMS int64      `json:"duration_ms"`
	ExecID     string     `json:"exec_id,omitempty"`
	Session    string     `json:"session,omitempty"`
	Language   string     `json:"language,omitempty"`
	Changes    []change   `json:"changes" jsonschema:"what it did to the files of the workspace"`
	MoreChange int        `json:"changes_left_out,omitempty"`
	Unknown    string     `json:"changes_error,omitempty"`
	Artifacts  []artifact `json:"artifacts" jsonschema:"files that it left below artifacts/ or where it was asked to"`
	Program    *program   `json:"program,omitempty" jsonschema:"what the program returned"`
	Calls      []toolCall `json:"calls,omitempty" jsonschema:"tools that it called"`
	Shell      *inShell   `json:"shell,omitempty"`
	Findings   []finding  `json:"findings,omitempty" jsonschema:"what the policy found"`
	Refused    string     `json:"refused,omitempty" jsonschema:"why it was rejected, and how a person can approve it"`
	Error      *problem   `json:"error,omitempty" jsonschema:"why it could not be run"`
}

type (
	change struct {
		Path string `json:"path"`
		Op   string `json:"op"`
		From string `json:"from,omitempty"`
		Size int64  `json:"size"`
	}
	artifact struct {
		Path string `json:"path"`
		Size int64  `json:"size"`
		Type string `json:"type,omitempty"`
		URI  string `json:"uri,omitempty" jsonschema:"the resource with its content"`
		Left string `json:"left,omitempty" jsonschema:"why its content is not there"`
	}
	program struct {
		Success bool                  `json:"success"`
		Value   any                   `json:"value,omitempty" jsonschema:"what it returned; where that is long, the resource that has it stands in cut"`
		Error   *sandbox.ProgramError `json:"error,omitempty"`
	}
	toolCall struct {
		Tool       string `json:"tool"`
		Error      string `json:"error,omitempty"`
		DurationMS int64  `json:"duration_ms"`
	}
	inShell struct {
		Name  string `json:"name"`
		Dir   string `json:"dir"`
		Ended string `json:"ended,omitempty"`
	}
	finding struct {
		ID          string `json:"id"`
		Severity    string `json:"severity"`
		Verdict     string `json:"verdict,omitempty"`
		File        string `json:"file,omitempty"`
		Line        int    `json:"line,omitempty"`
		Message     string `json:"message"`
		Remediation string `json:"remediation,omitempty"`
	}
	problem struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}
)

// answer is what a run came to, with what lies beside it.
func (s *Server) answer(who sandbox.Caller, res sandbox.Result, err error) (*mcp.CallToolResult, outcome, error) {
	o := outcome{Status: success, Changes: []change{}, Artifacts: []artifact{}}
	denied, refused := errors.AsType[*sandbox.DeniedError](err)
	switch {
	case refused:
		res.Decision, res.Reason = denied.Decision, sandbox.ReasonDenied
		res.Exit = res.Coded()
		o.Status, o.Refused = rejected, cmp.Or(denied.Decision.Refused, denied.Error())
	case err != nil:
		p := sandbox.ProblemOf(err, 0)
		o.Status, o.Error = failed, &problem{p.Kind, p.Message, p.Hint}
	case res.Code != 0 || res.Reason != sandbox.ReasonExited || res.Program != nil && !res.Program.Success:
		o.Status = failed
	}
	o.fill(res)
	r := &mcp.CallToolResult{IsError: o.Status != success}
	var beside []mcp.Content
	for _, stream := range []struct {
		name string
		b    []byte
		to   *string
	}{{"stdout", res.Stdout, &o.Stdout}, {"stderr", res.Stderr, &o.Stderr}} {
		text, whole := shorten(stream.b)
		*stream.to = text
		if !whole {
			l := s.shelf.put(who, res.ExecID, stream.name, "", stream.b)
			o.Cut, beside = append(o.Cut, l.URI), append(beside, l)
		}
	}
	if p := res.Program; p != nil {
		o.Program = &program{Success: p.Success, Error: p.Error}
		switch {
		case p.Value == nil:
		case len(p.Value) <= shownOutput:
			o.Program.Value = p.Value
		default:
			l := s.shelf.put(who, res.ExecID, "value", "application/json", p.Value)
			o.Cut, beside = append(o.Cut, l.URI), append(beside, l)
		}
	}
	pictures := 0
	for _, a := range res.Artifacts {
		shown := artifact{Path: strings.ToValidUTF8(a.Path, "\uFFFD"), Size: a.Size, Type: a.Type, Left: a.Left}
		if a.Left == "" {
			l := s.shelf.put(who, res.ExecID, a.Path, a.Type, a.Data)
			shown.URI = l.URI
			beside = append(beside, l)
			if pictures+len(a.Data) <= shownImage && picture(a.Type) {
				pictures += len(a.Data)
				beside = append(beside, &mcp.ImageContent{Data: a.Data, MIMEType: a.Type})
			}
		}
		o.Artifacts = append(o.Artifacts, shown)
	}
	text, err := jsonText(o)
	r.Content = append([]mcp.Content{text}, beside...)
	return r, o, err
}

// fill takes over what is told as it is.
func (o *outcome) fill(res sandbox.Result) {
	o.ExitCode, o.ExitReason, o.Signal, o.Cause = res.Code, string(res.Reason), res.Signal, res.Cause
	o.DurationMS, o.ExecID, o.Session, o.Language, o.Unknown = res.Duration.Milliseconds(), string(res.ExecID), res.Session, res.Language, res.ChangesError
	for i, c := range res.Changes {
		if i == shownChanges {
			o.MoreChange = len(res.Changes) - i
			break
		}
		o.Changes = append(o.Changes, change{Path: strings.ToValidUTF8(c.Path, "\uFFFD"), Op: string(c.Op), From: strings.ToValidUTF8(c.From, "\uFFFD"), Size: c.After.Size})
	}
	for i, c := range res.Calls {
		if i == shownChanges {
			break
		}
		o.Calls = append(o.Calls, toolCall{c.Tool, c.Error, time.Duration(c.Duration).Milliseconds()})
	}
	if res.Shell != nil {
		o.Shell = &inShell{res.Shell.Name, res.Shell.Dir, res.Shell.Ended}
	}
	if o.Status == rejected {
		for _, f := range res.Decision.Findings {
			if f.Verdict != sandbox.Allow {
				o.Findings = append(o.Findings, finding{f.ID, f.Severity.String(), string(f.Verdict), f.File, f.Line, f.Message, f.Remediation})
			}
		}
	}
}

// picture reports whether clients show a media type.
func picture(media string) bool {
	return media == "image/png" || media == "image/jpeg" || media == "image/gif" || media == "image/webp"
}

// shorten gives a text with head and tail of b, and whether that is all of it.
func shorten(b []byte) (text string, whole bool) {
	whole = utf8.Valid(b)
	if len(b) <= shownOutput {
		return strings.ToValidUTF8(string(b), "\uFFFD"), whole
	}
	head, tail := b[:shownOutput/2], b[len(b)-shownOutput/2:]
	for range utf8.UTFMax - 1 { // no character is cut in two
		if last, n := utf8.DecodeLastRune(head); last == utf8.RuneError && n == 1 {
			head = head[:len(head)-1]
		}
		if len(tail) > 0 && !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
	}
	left := len(b) - len(head) - len(tail)
	return fmt.Sprintf("%s\n[… %d bytes are left out: the resource has all …]\n%s", strings.ToValidUTF8(string(head), "\uFFFD"), left, strings.ToValidUTF8(string(tail), "\uFFFD")), false
}
