package server

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// lambdaPath is where the invoke call of the vendor's own API is served, so that its
// SDKs call functions once their endpoint is set. The token comes as the session
// token of their credentials; what they sign is not looked at.
const lambdaPath = "/2015-03-31/"

// asBearer is a request with its token where all others have it.
func asBearer(r *http.Request) *http.Request {
	token := r.Header.Get("X-Amz-Security-Token")
	if token == "" || !strings.HasPrefix(r.URL.Path, lambdaPath) {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// lambdaErrors is the one table from kinds to the vendor's names and statuses. What
// is not in it is the server's fault.
var lambdaErrors = map[sandbox.Kind]struct {
	code int
	name string
}{
	sandbox.NotFound:  {http.StatusNotFound, "ResourceNotFoundException"},
	sandbox.Conflict:  {http.StatusNotFound, "ResourceNotFoundException"}, // another version than was asked for
	sandbox.Invalid:   {http.StatusBadRequest, "InvalidRequestContentException"},
	sandbox.Denied:    {http.StatusForbidden, "AccessDeniedException"},
	sandbox.Exhausted: {http.StatusTooManyRequests, "TooManyRequestsException"},
}

// lambdaError answers an error in the vendor's form.
func lambdaError(w http.ResponseWriter, err error) {
	as, known := lambdaErrors[sandbox.KindOf(err)]
	as.code, as.name = cmp.Or(as.code, http.StatusInternalServerError), cmp.Or(as.name, "ServiceException")
	kind := "Service"
	if known {
		kind = "User"
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		as.code, as.name, kind = http.StatusRequestEntityTooLarge, "RequestTooLargeException", "User"
	}
	message := err.Error()
	if hint := sandbox.HintOf(err); hint != "" {
		message += "; " + hint
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", as.name)
	w.WriteHeader(as.code)
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": kind, "message": message}) // who asked may be gone
}

// invokeLambda answers the vendor's Invoke.
func (s *Server) invokeLambda(w http.ResponseWriter, r *http.Request) {
	call, err := lambdaCall(r)
	if err != nil {
		lambdaError(w, err)
		return
	}
	switch kind := cmp.Or(r.Header.Get("X-Amz-Invocation-Type"), "RequestResponse"); kind {
	case "RequestResponse":
		done, err := s.svc.InvokeFunction(r.Context(), call, sandbox.Local{})
		if err != nil {
			lambdaError(w, err)
			return
		}
		answerLambda(w, done, r.Header.Get("X-Amz-Log-Type") == "Tail")
	case "Event":
		call.Later = true
		if _, err := s.svc.InvokeFunction(r.Context(), call, sandbox.Local{}); err != nil {
			lambdaError(w, err)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	case "DryRun":
		if _, err := s.svc.Function(r.Context(), call.Function); err != nil {
			lambdaError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		lambdaError(w, sandbox.Errorf(sandbox.Invalid, "unknown invocation type %q", kind).WithHint("use RequestResponse, Event or DryRun"))
	}
}

// lambdaCall reads what is called: the function may be named by its ARN, and with a
// qualifier.
func lambdaCall(r *http.Request) (call sandbox.Invocation, err error) {
	name, qualifier := r.PathValue("function"), r.URL.Query().Get("Qualifier")
	if i := strings.LastIndex(name, "function:"); i >= 0 {
		name = name[i+len("function:"):]
	}
	if rest, q, found := strings.Cut(name, ":"); found {
		name, qualifier = rest, cmp.Or(qualifier, q)
	}
	call.Function = name
	if qualifier != "" && qualifier != "$LATEST" {
		if call.Version, err = strconv.Atoi(qualifier); err != nil || call.Version < 1 {
			return call, sandbox.Errorf(sandbox.NotFound, "function %s has no %s", name, qualifier).WithHint("leave the qualifier out, or give the number of the version")
		}
	}
	if given := r.Header.Get("X-Amz-Client-Context"); given != "" {
		if call.ClientContext, err = base64.StdEncoding.DecodeString(given); err != nil {
			return call, sandbox.Errorf(sandbox.Invalid, "the client context is not base64")
		}
	}
	call.Event, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, int64(sandbox.MaxPayload)))
	return call, err
}

// answerLambda answers what came of a call.
func answerLambda(w http.ResponseWriter, done sandbox.Invoked, tail bool) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Requestid", done.RequestID)
	h.Set("X-Amz-Executed-Version", strconv.Itoa(done.Version))
	if done.Error != nil {
		h.Set("X-Amz-Function-Error", done.Error.Class)
	}
	if tail {
		text := lambdaLog(done)
		h.Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte(text[max(0, len(text)-4096):])))
	}
	_, _ = w.Write(done.Payload()) // who asked may be gone
}

// lambdaLog is what a call printed, with what the vendor writes around it.
func lambdaLog(done sandbox.Invoked) string {
	ms := func(d sandbox.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	log := done.Log
	if log != "" && !strings.HasSuffix(log, "\n") {
		log += "\n"
	}
	report := fmt.Sprintf("REPORT RequestId: %s\tDuration: %.2f ms\tMax Memory Used: %d MB", done.RequestID, ms(done.Duration), done.PeakMemory/sandbox.MiB)
	if done.Cold {
		report += fmt.Sprintf("\tInit Duration: %.2f ms", ms(done.Init))
	}
	return fmt.Sprintf("START RequestId: %s Version: %d\n%sEND RequestId: %s\n%s\n", done.RequestID, done.Version, log, done.RequestID, report)
}
