package e2b

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// Labels of a session that is a sandbox of this wire's. A client's metadata are
// labels beside them.
const (
	labelPrefix     = "e2b/"
	labelWire       = labelPrefix + "sandbox" // "true"
	labelTemplate   = labelPrefix + "template"
	labelOnTimeout  = labelPrefix + "on-timeout"       // "pause", or absent
	labelForgets    = labelPrefix + "forgets"          // "true" where that pause keeps no memory, or absent
	labelAutoResume = labelPrefix + "auto-resume"      // "true", or absent
	labelPrivate    = labelPrefix + "private-previews" // "true", or absent
	labelTag        = labelPrefix + "tag"              // of an exec
	labelNumber     = labelPrefix + "number"           // of an exec: see [Server.begin]
)

// defaultTimeout is how long a sandbox lives whose creator does not say.
const defaultTimeout = 300 // seconds

// created is what a client asks for.
type created struct {
	Template     string            `json:"templateID"`
	Timeout      *int64            `json:"timeout"` // seconds
	Metadata     map[string]string `json:"metadata"`
	Env          map[string]string `json:"envVars"`
	Internet     *bool             `json:"allow_internet_access"`
	InternetOld  *bool             `json:"allowInternetAccess"`
	AutoPause    bool              `json:"autoPause"`
	KeepMemory   *bool             `json:"autoPauseMemory"`
	AutoResume   struct{ Enabled bool }
	Network      *network `json:"network"`
	MCP          any      `json:"mcp"`
	IAM          any      `json:"iam"`
	VolumeMounts []any    `json:"volumeMounts"`
}

// network is what a client wants to be reachable.
type network struct {
	AllowOut    []string `json:"allowOut"`
	DenyOut     []string `json:"denyOut"`
	EgressProxy any      `json:"egressProxy"`
	Rules       any      `json:"rules"`
	// PublicTraffic is false where previews are for who shows a pass.
	PublicTraffic *bool  `json:"allowPublicTraffic"`
	MaskHost      string `json:"maskRequestHost"`
}

// reached is what a client needs to speak with a sandbox.
type reached struct {
	ID          string `json:"sandboxID"`
	Template    string `json:"templateID"`
	ClientID    string `json:"clientID"`
	Domain      string `json:"domain"`
	EnvdVersion string `json:"envdVersion"`
	Pass        string `json:"envdAccessToken"`
	Traffic     string `json:"trafficAccessToken"`
}

// listed is a sandbox in a list, or by itself.
type listed struct {
	ID          string            `json:"sandboxID"`
	Template    string            `json:"templateID"`
	ClientID    string            `json:"clientID"`
	Domain      string            `json:"domain"`
	EnvdVersion string            `json:"envdVersion"`
	State       string            `json:"state"`
	Started     time.Time         `json:"startedAt"`
	Ends        time.Time         `json:"endAt"`
	CPUs        int               `json:"cpuCount"`
	MemoryMB    int64             `json:"memoryMB"`
	DiskMB      int64             `json:"diskSizeMB"`
	Metadata    map[string]string `json:"metadata"`
	Lifecycle   lifecycle         `json:"lifecycle"`
}

type lifecycle struct {
	OnTimeout  string `json:"onTimeout"`
	AutoResume bool   `json:"autoResume"`
}

func (s *Server) controlRoutes() {
	for _, v := range []string{"", "/v2"} {
		for pattern, do := range map[string]handler{
			"POST %/sandboxes": s.create, "GET %/sandboxes": s.list, "GET %/sandboxes/{id}": s.info, "DELETE %/sandboxes/{id}": s.kill,
			"POST %/sandboxes/{id}/connect": s.connect, "POST %/sandboxes/{id}/resume": s.connect, "POST %/sandboxes/{id}/timeout": s.setTimeout,
			"POST %/sandboxes/{id}/pause": s.pause, "GET %/sandboxes/{id}/metrics": s.metrics, "POST %/sandboxes/{id}/refreshes": s.refresh,
		} {
			s.control.Handle(strings.Replace(pattern, "%", v, 1), do)
		}
	}
	s.control.Handle("POST /sandboxes/{id}/snapshots", handler(s.createSnapshot))
	s.control.Handle("POST /sandboxes/{id}/fork", handler(s.fork))
	s.control.Handle("GET /snapshots", handler(s.listSnapshots))
	s.control.Handle("DELETE /templates/{id}", handler(s.deleteTemplate))
	s.control.Handle("/", handler(func(_ http.ResponseWriter, r *http.Request) error {
		return sandbox.Errorf(sandbox.Unsupported, "caisson does not serve %s %s of E2B's API", r.Method, r.URL.Path).WithHint("docs/e2b.md says what it serves")
	}))
}

// create makes a sandbox that runs once it is answered.
func (s *Server) create(w http.ResponseWriter, r *http.Request) error {
	var in created
	if err := body(w, r, &in); err != nil {
		return err
	}
	// Clients of the first version ask for the internet where nobody has said a word: it is
	// no wish, and they name all addresses in allowOut where it is one.
	if !strings.HasPrefix(r.URL.Path, "/v2/") {
		in.Internet, in.InternetOld = no(in.Internet), no(in.InternetOld)
	}
	opts, err := session(in)
	if err != nil {
		return err
	}
	made, err := s.make(r.Context(), opts)
	if err != nil {
		return err
	}
	out, err := s.begun(r, made)
	if err != nil {
		return err
	}
	answer(w, http.StatusCreated, out)
	return nil
}

// make makes a sandbox's session, of what its template says.
func (s *Server) make(ctx context.Context, o api.SessionOptions) (sandbox.Session, error) {
	if name := o.Labels[labelTemplate]; name != baseTemplate {
		snap, err := s.snapshot(ctx, name)
		if err == nil {
			return s.ofSnapshot(ctx, snap, o)
		}
		if !errors.Is(err, sandbox.NotFound) {
			return sandbox.Session{}, err
		}
	}
	if err := s.template(ctx, &o); err != nil {
		return sandbox.Session{}, err
	}
	return s.svc.CreateSession(ctx, o, sandbox.Local{})
}

// begun starts a sandbox whose session is made, or removes it.
func (s *Server) begun(r *http.Request, made sandbox.Session) (reached, error) {
	if _, err := s.svc.Files(r.Context(), made.Name); err != nil { // has it made now
		return reached{}, errors.Join(err, s.svc.RemoveSession(context.WithoutCancel(r.Context()), made.Name, true))
	}
	s.deadlineSet()
	return s.reached(r, made)
}

// session is what a sandbox is asked for, as caisson has it, but for its template.
func session(in created) (o api.SessionOptions, err error) {
	switch {
	case in.MCP != nil, in.IAM != nil, len(in.VolumeMounts) > 0:
		return o, sandbox.Errorf(sandbox.Unsupported, "mcp, iam and volumeMounts are not served").WithHint("leave them out; docs/e2b.md says why")
	case in.Timeout != nil && *in.Timeout < 0:
		return o, checkTimeout(*in.Timeout)
	}
	o = api.SessionOptions{Name: "i" + string(sandbox.NewID()), Labels: sandbox.Labels{labelWire: "true", labelTemplate: cmp.Or(in.Template, baseTemplate)}}
	for k, v := range in.Metadata {
		if strings.HasPrefix(k, labelPrefix) {
			return o, sandbox.Errorf(sandbox.Invalid, "metadata %q", k).WithHint("keys that begin with %s are caisson's", labelPrefix)
		}
		o.Labels[k] = v
	}
	if in.AutoPause {
		o.Labels[labelOnTimeout] = "pause"
		if in.KeepMemory != nil && !*in.KeepMemory {
			if in.AutoResume.Enabled {
				return o, sandbox.Errorf(sandbox.Invalid, "a sandbox without its memory does not go on by itself").WithHint("leave autoResume out, and connect to it")
			}
			o.Labels[labelForgets] = "true"
		}
	}
	if n := in.Network; n != nil && n.PublicTraffic != nil && !*n.PublicTraffic {
		o.Labels[labelPrivate] = "true"
	}
	if in.AutoResume.Enabled {
		o.Labels[labelAutoResume] = "true"
	}
	if o.Env, err = envOf(in.Env); err != nil {
		return o, err
	}
	timeout := int64(defaultTimeout)
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	o.TTL = ttl(timeout, o.Labels)
	o.Network, err = in.net()
	return o, err
}

// envOf are variables as caisson has them.
func envOf(all map[string]string) (env []string, err error) {
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if k == "" || strings.Contains(k, "=") {
			return nil, sandbox.Errorf(sandbox.Invalid, "%q is no name of a variable", k)
		}
		env = append(env, k+"="+all[k])
	}
	return env, nil
}

// no is what a client says against something; what it says for it is nothing.
func no(said *bool) *bool {
	if said != nil && *said {
		return nil
	}
	return said
}

// net is the network that a client asks for. What it leaves open is none.
func (c created) net() (sandbox.Network, error) {
	internet := c.Internet
	if internet == nil {
		internet = c.InternetOld
	}
	if n := c.Network; n != nil {
		if n.EgressProxy != nil || n.Rules != nil || n.MaskHost != "" {
			return sandbox.Network{}, sandbox.Errorf(sandbox.Unsupported, "egressProxy, rules and maskRequestHost of the network are not served").WithHint("name hosts in allowOut")
		}
		allow := slices.DeleteFunc(slices.Clone(n.AllowOut), isAll)
		if len(allow) > 0 {
			return sandbox.Network{Mode: sandbox.NetworkAllow, Allow: allow, Deny: slices.DeleteFunc(slices.Clone(n.DenyOut), isAll)}, nil
		}
		open := slices.ContainsFunc(n.AllowOut, isAll)
		if slices.ContainsFunc(n.DenyOut, isAll) && !open {
			return sandbox.Network{}, nil
		}
		if len(slices.DeleteFunc(slices.Clone(n.DenyOut), isAll)) > 0 {
			return sandbox.Network{}, sandbox.Errorf(sandbox.Unsupported, "a network that is open but for some hosts").WithHint("name what may be reached in allowOut")
		}
		if open {
			return sandbox.Network{Mode: sandbox.NetworkBridge}, nil
		}
	}
	if internet != nil && *internet {
		return sandbox.Network{Mode: sandbox.NetworkBridge}, nil
	}
	return sandbox.Network{}, nil
}

// isAll reports whether a client means every address.
func isAll(pattern string) bool { return pattern == "0.0.0.0/0" || pattern == "::/0" }

// reached is a sandbox as a client reaches it from then on.
func (s *Server) reached(r *http.Request, of sandbox.Session) (reached, error) {
	token, err := s.tokenOf(r.Context())
	return reached{
		ID: of.Name, Template: of.Labels[labelTemplate], ClientID: "caisson", Domain: s.domainOf(r, of, token), EnvdVersion: envdVersion,
		Pass: s.pass(of.Name, token), Traffic: s.previewPass(of.Name, token),
	}, err
}

// find returns a sandbox that is there, running or paused. Errors: NotFound.
func (s *Server) find(ctx context.Context, id string) (sandbox.SessionView, error) {
	found, err := s.svc.Sessions(ctx, sandbox.SessionFilter{Name: id, Running: true})
	if err != nil {
		return sandbox.SessionView{}, err
	}
	if id == "" || len(found) == 0 || found[0].Labels[labelWire] != "true" || !s.lives(found[0]) {
		return sandbox.SessionView{}, sandbox.Errorf(sandbox.NotFound, "sandbox %s was not found", id)
	}
	return found[0], nil
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) error {
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, s.listed(r, v))
	return nil
}

// listed is a sandbox as it is shown.
func (s *Server) listed(r *http.Request, v sandbox.SessionView) listed {
	limits := v.Limits.WithDefaults()
	l := listed{
		ID: v.Name, Template: v.Labels[labelTemplate], ClientID: "caisson", Domain: domain(r), EnvdVersion: envdVersion, State: "running",
		Started: v.Created, Ends: s.ends(v), CPUs: int(math.Ceil(limits.CPUs)), MemoryMB: int64(limits.Memory / sandbox.MiB), DiskMB: int64(limits.Workspace / sandbox.MiB),
		Metadata: map[string]string{}, Lifecycle: lifecycle{OnTimeout: cmp.Or(v.Labels[labelOnTimeout], "kill"), AutoResume: v.Labels[labelAutoResume] == "true"},
	}
	if isPaused(v) {
		l.State = "paused"
	}
	for k, value := range v.Labels {
		if !strings.HasPrefix(k, labelPrefix) {
			l.Metadata[k] = value
		}
	}
	return l
}

// kill ends a sandbox with all that it holds. Whoever asks for its health meanwhile
// is told that it is gone, before streams to it break.
func (s *Server) kill(w http.ResponseWriter, r *http.Request) error {
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := s.finish(r.Context(), v); err != nil {
		return err
	}
	answer(w, http.StatusNoContent, nil)
	return nil
}

// connect hands out a sandbox again: a paused one goes on, and its end is put off.
func (s *Server) connect(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Timeout *int64 `json:"timeout"`
		Memory  *bool  `json:"memory"`
	}
	if err := body(w, r, &in); err != nil {
		return err
	}
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	timeout := int64(defaultTimeout)
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	status := http.StatusOK
	if isPaused(v) {
		err := s.resume(r.Context(), v, timeout, in.Memory == nil || *in.Memory)
		if errors.Is(err, sandbox.Conflict) { // another was faster, or it was frozen for a copy
			if v, err = s.find(r.Context(), v.Name); err == nil {
				err = s.extend(r.Context(), v, timeout)
			}
		}
		if err != nil {
			return err
		}
		status = http.StatusCreated
	} else if err := s.extend(r.Context(), v, timeout); err != nil {
		return err
	}
	out, err := s.reached(r, v.Session)
	if err != nil {
		return err
	}
	answer(w, status, out)
	return nil
}

// metrics reads what a sandbox uses now: there is one sample, and no past.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	v, err := s.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	stats, err := s.svc.SessionStats(r.Context(), v.Name)
	if err != nil {
		return err
	}
	samples := []map[string]any{}
	for _, one := range stats.Sandboxes {
		m := one.Sample
		if m.Time.IsZero() {
			continue
		}
		age := max(time.Since(v.Created), time.Millisecond)
		samples = append(samples, map[string]any{
			"timestamp": m.Time, "timestampUnix": m.Time.Unix(), "cpuCount": int(math.Ceil(m.CPUs)), "cpuUsedPct": 100 * float64(m.CPU) / float64(age),
			"memUsed": m.Memory, "memTotal": m.MemoryLimit, "memCache": m.MemoryCached - min(m.MemoryCached, m.Memory), "diskUsed": m.Workspace, "diskTotal": m.WorkspaceSize,
		})
	}
	answer(w, http.StatusOK, samples)
	return nil
}
