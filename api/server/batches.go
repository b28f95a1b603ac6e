package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/batch"
	"github.com/caisson-dev/caisson/sandbox"
)

// typeLines is the kind of content that has a JSON object a line.
const typeLines = "application/x-ndjson"

// mostWorkers bounds what one batch runs at once.
const mostWorkers = 256

// batches carries out many runs in one call, as `caisson run --batch` does.
func batches(s *Server) {
	const path = "/v1/batches"
	lines := &huma.Schema{Type: huma.TypeString, Description: "a Result a line, with the id and the line of its run; or error in its place"}
	handleRaw(s, call{"RunBatch", post, path, "Run many codes, each in a sandbox of its own", 0}, map[string]*huma.Schema{typeLines: lines}, func(in *struct {
		Workers int  `query:"workers" minimum:"0" maximum:"256" doc:"so many at once; 0 is one for each processor of the server"`
		Ordered bool `query:"ordered" doc:"answer in the order of the lines, and not of their ends"`
	}, w http.ResponseWriter, r *http.Request) error {
		return s.batch(w, r, in.Workers, in.Ordered)
	})
	s.api.OpenAPI().Paths[path].Post.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		typeLines: {Schema: &huma.Schema{Type: huma.TypeString, Description: "a run a line, as POST /v1/runs takes it, with an id: a text or a number"}},
	}}
}

// batch reads all lines, since few clients read an answer before they have sent
// their request, and answers each run as it ends.
func (s *Server) batch(w http.ResponseWriter, r *http.Request, workers int, ordered bool) error {
	body, p := s.whole(w, r, "send fewer lines in one request")
	switch {
	case p != nil:
		return p
	case len(bytes.TrimSpace(body)) == 0:
		return sandbox.Errorf(sandbox.Invalid, "no runs").WithHint("send at least one line")
	}
	release, err := s.takeStream()
	if err != nil {
		return err
	}
	defer release()
	w.Header().Set("Content-Type", typeLines)
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects would hold lines back
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	if err := flush(); err != nil {
		return err
	}
	runs := batch.Runs{Workers: min(cmp.Or(workers, runtime.NumCPU()), mostWorkers), Ordered: ordered, Do: s.svc.Run, LanguageOf: s.svc.LanguageOf}
	err = runs.Run(r.Context(), batch.Lines(bytes.NewReader(body)), func(e batch.Ended) error {
		line, err := json.Marshal(e)
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		return errors.Join(err, flush())
	})
	if err != nil {
		panic(http.ErrAbortHandler) // what is cut off is not to look whole
	}
	return nil
}
