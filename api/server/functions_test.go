package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/server"
	"github.com/caisson-dev/caisson/sandbox"
)

// lambdas is a service with one function, named f, that a test stands in for.
type lambdas struct {
	api.Service
	invoke func(call sandbox.Invocation) (sandbox.Invoked, error)
}

func (l lambdas) Function(_ context.Context, name string) (sandbox.Function, error) {
	if name != "f" {
		return sandbox.Function{}, sandbox.Errorf(sandbox.NotFound, "no function %s", name)
	}
	return sandbox.Function{Name: name}, nil
}

func (l lambdas) Functions(_ context.Context, f sandbox.FunctionFilter) ([]sandbox.Function, error) {
	return []sandbox.Function{{Name: "f" + f.Labels["a"]}, {Name: "g"}}, nil
}

func (l lambdas) PutFunction(_ context.Context, o sandbox.FunctionOptions, _ sandbox.Local) (sandbox.Function, error) {
	return sandbox.Function{Name: o.Name, Handler: string(o.Files[0].Data), Timeout: o.Timeout}, nil
}

func (l lambdas) RemoveFunction(ctx context.Context, name string) error {
	_, err := l.Function(ctx, name)
	return err
}

func (l lambdas) InvokeFunction(ctx context.Context, call sandbox.Invocation, _ sandbox.Local) (sandbox.Invoked, error) {
	if _, err := l.Function(ctx, call.Function); err != nil {
		return sandbox.Invoked{}, err
	}
	return l.invoke(call)
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	ts := serve(t, server.Config{Service: lambdas{invoke: func(call sandbox.Invocation) (sandbox.Invoked, error) {
		return sandbox.Invoked{Function: call.Function, Value: call.Event}, nil
	}}})
	for _, tt := range []struct {
		method, path, body string
		code               int
		has                string
	}{
		{"POST", "/v1/functions", `{"name":"f","handler":"main.handler","timeout_ms":1500,"files":[{"path":"main.py","data":"code"}]}`, 201, `"handler":"code"`},
		{"POST", "/v1/functions", `{"name":"f","handler":"main.handler","files":[],"colour":1}`, 400, "colour"},
		{"GET", "/v1/functions?limit=1&label=a%3Db", "", 200, `"next":"fb"`},
		{"GET", "/v1/functions/f", "", 200, `"name":"f"`},
		{"GET", "/v1/functions/g", "", 404, "no function g"},
		{"POST", "/v1/functions/invoke", `{"function":"f","event":{"a":[1]}}`, 200, `"value":{"a":[1]}`},
		{"POST", "/v1/functions/invoke", `{"function":"g"}`, 404, "no function g"},
		{"DELETE", "/v1/functions/f", "", 204, ""},
	} {
		res, body := ask(t, tt.method, ts.URL+tt.path, tt.body, "Content-Type", "application/json")
		if res.StatusCode != tt.code || !strings.Contains(body, tt.has) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, res.StatusCode, body)
		}
	}
}

// TestLambda speaks as the vendor's SDKs do.
func TestLambda(t *testing.T) {
	t.Parallel()
	called := make(chan sandbox.Invocation, 100)
	ts := serve(t, server.Config{
		Authenticate: func(r *http.Request) (sandbox.Caller, error) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				return sandbox.Caller{}, sandbox.Errorf(sandbox.Denied, "no token")
			}
			return sandbox.Caller{Owner: "me"}, nil
		},
		Service: lambdas{invoke: func(call sandbox.Invocation) (sandbox.Invoked, error) {
			called <- call
			done := sandbox.Invoked{RequestID: "id", Version: 3, Log: strings.Repeat("x", 5000) + "\nlast", Value: call.Event, Duration: sandbox.Duration(2e6), PeakMemory: 5 * sandbox.MiB}
			switch string(call.Event) {
			case "1":
				done.Value, done.Error = nil, &sandbox.FunctionError{Class: sandbox.FunctionHandled, Type: "KeyError", Message: "no"}
			case "2":
				return sandbox.Invoked{}, sandbox.Errorf(sandbox.Exhausted, "too many")
			case "3":
				return sandbox.Invoked{}, &sandbox.DeniedError{}
			case "4":
				return sandbox.Invoked{}, sandbox.Errorf(sandbox.Unavailable, "lost")
			case "{":
				return sandbox.Invoked{}, sandbox.Errorf(sandbox.Invalid, "no JSON")
			}
			return done, nil
		}},
	})
	const path = "/2015-03-31/functions/f/invocations"
	for name, tt := range map[string]struct {
		path, event string
		header      []string
		code        int
		body, kind  string
		fault       string
	}{
		"value":        {path, `{"a":1}`, nil, 200, `{"a":1}`, "", ""},
		"error":        {path, `1`, nil, 200, `{"errorType":"KeyError","errorMessage":"no","requestId":"id","stackTrace":[]}`, "", "Handled"},
		"many":         {path, `2`, nil, 429, `too many`, "TooManyRequestsException", ""},
		"refused":      {path, `3`, nil, 403, ``, "AccessDeniedException", ""},
		"lost":         {path, `4`, nil, 500, `lost`, "ServiceException", ""},
		"no JSON":      {path, `{`, nil, 400, `no JSON`, "InvalidRequestContentException", ""},
		"no function":  {"/2015-03-31/functions/g/invocations", `5`, nil, 404, `no function g`, "ResourceNotFoundException", ""},
		"by ARN":       {"/2015-03-31/functions/arn%3Aaws%3Alambda%3Alocal%3A000000000000%3Afunction%3Af/invocations", `5`, nil, 200, `5`, "", ""},
		"by version":   {path + "?Qualifier=3", `5`, nil, 200, `5`, "", ""},
		"by alias":     {path + "?Qualifier=prod", `5`, nil, 404, `prod`, "ResourceNotFoundException", ""},
		"latest":       {path + "?Qualifier=%24LATEST", `5`, nil, 200, `5`, "", ""},
		"large":        {path, `"` + strings.Repeat("x", int(sandbox.MaxPayload)) + `"`, nil, 413, "", "RequestTooLargeException", ""},
		"dry":          {path, `5`, []string{"X-Amz-Invocation-Type", "DryRun"}, 204, "", "", ""},
		"event":        {path, `6`, []string{"X-Amz-Invocation-Type", "Event"}, 202, "", "", ""},
		"unknown type": {path, `5`, []string{"X-Amz-Invocation-Type", "Maybe"}, 400, "Maybe", "InvalidRequestContentException", ""},
		"client":       {path, `7`, []string{"X-Amz-Client-Context", base64.StdEncoding.EncodeToString([]byte(`{"custom":{}}`))}, 200, "7", "", ""},
	} {
		header := append([]string{"X-Amz-Security-Token", "secret", "Authorization", "AWS4-HMAC-SHA256 Credential=x", "Content-Type", "application/octet-stream"}, tt.header...)
		res, body := ask(t, "POST", ts.URL+tt.path, tt.event, header...)
		if res.StatusCode != tt.code || !strings.Contains(body, tt.body) || res.Header.Get("X-Amzn-Errortype") != tt.kind || res.Header.Get("X-Amz-Function-Error") != tt.fault {
			t.Errorf("%s: %d %v %.300s", name, res.StatusCode, res.Header, body)
		}
		if tt.code == 200 && (res.Header.Get("X-Amz-Executed-Version") != "3" || res.Header.Get("X-Amz-Log-Result") != "") {
			t.Errorf("%s: %v", name, res.Header)
		}
	}
	later := false
	for range len(called) {
		call := <-called
		later = later || call.Later && string(call.Event) == "6"
		if string(call.Event) == "7" && string(call.ClientContext) != `{"custom":{}}` {
			t.Errorf("%+v", call)
		}
	}
	if !later {
		t.Error("nobody was to wait for the event")
	}
	res, _ := ask(t, "POST", ts.URL+path, `5`, "X-Amz-Security-Token", "secret", "X-Amz-Log-Type", "Tail")
	log, err := base64.StdEncoding.DecodeString(res.Header.Get("X-Amz-Log-Result"))
	if err != nil || len(log) != 4096 || !strings.HasSuffix(string(log), "x\nlast\nEND RequestId: id\nREPORT RequestId: id\tDuration: 2.00 ms\tMax Memory Used: 5 MB\n") {
		t.Errorf("%v %d bytes: %s", err, len(log), log[max(0, len(log)-200):])
	}
	res, body := ask(t, "POST", ts.URL+path, `5`, "X-Amz-Security-Token", "wrong")
	var problem map[string]any
	if res.StatusCode != 401 || res.Header.Get("X-Amzn-Errortype") != "AccessDeniedException" || json.Unmarshal([]byte(body), &problem) != nil || problem["message"] != "no token" {
		t.Errorf("a wrong token: %d %v %s", res.StatusCode, res.Header, body)
	}
	if res, _ := ask(t, "GET", ts.URL+"/v1/functions/f", "", "X-Amz-Security-Token", "secret"); res.StatusCode != 401 {
		t.Errorf("elsewhere the vendor's header lets nobody in, but %d", res.StatusCode)
	}
}
