package docker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-connections/nat"
	"github.com/google/go-cmp/cmp"

	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

// asked is a request of every kind of mount, twice: what is asked for, and a
// container as an engine shows it that did just that.
func asked(t *testing.T) (request, container.InspectResponse) {
	t.Helper()
	r := &Runtime{cfg: Config{Agent: "/usr/libexec/caisson-agent"}}
	plan, err := r.Plan(t.Context(), sandbox.Spec{
		Image: sandbox.Image{ID: "sha256:1", Volumes: []string{"/data"}}, Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001},
		Workspace: sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var want, made request
	for _, req := range []*request{&want, &made} {
		if err := json.Unmarshal(plan.Request, req); err != nil {
			t.Fatal(err)
		}
		req.HostConfig.Mounts = append(req.HostConfig.Mounts, mount.Mount{Type: mount.TypeBind, Source: "/home/me", Target: "/x",
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: true}})
		req.Config.Labels = map[string]string{labelID: "1"}
	}
	return want, container.InspectResponse{
		ContainerJSONBase: &container.ContainerJSONBase{HostConfig: made.HostConfig, Path: agentPath, Args: []string{}, Image: "sha256:1"},
		Config:            made.Config,
	}
}

// What engines write otherwise for the same is no difference.
func TestSame(t *testing.T) {
	t.Parallel()
	no, seconds := false, 10
	for name, change := range map[string]func(*container.InspectResponse){
		"nothing": func(*container.InspectResponse) {},
		"the image's": func(g *container.InspectResponse) {
			c := g.Config
			c.Env, c.Volumes, c.StopSignal, c.StopTimeout = []string{"PATH=/bin"}, map[string]struct{}{"/data": {}}, "SIGINT", &seconds
			c.ExposedPorts, c.OnBuild, c.Shell = nat.PortSet{"80/tcp": {}}, []string{"RUN true"}, []string{"/bin/sh"}
			c.Labels["maintainer"], c.Cmd = "me", nil
			c.Healthcheck.Interval = time.Minute
		},
		"20.10": func(g *container.InspectResponse) {
			h := g.HostConfig
			h.CapAdd, h.Runtime, h.OomKillDisable = []string{"CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SYS_PTRACE"}, "runc", &no
			h.MaskedPaths, h.ReadonlyPaths = []string{"/proc/kcore"}, []string{"/proc/sys"}
			h.LogConfig.Config, h.PortBindings = map[string]string{}, nat.PortMap{}
		},
		"a restart policy": func(g *container.InspectResponse) { g.HostConfig.RestartPolicy.Name = "no" },
		"mounts as before API 1.44": func(g *container.InspectResponse) {
			for _, m := range g.HostConfig.Mounts {
				if m.BindOptions != nil {
					m.BindOptions.ReadOnlyNonRecursive = true
				}
			}
		},
		"what is mounted": func(g *container.InspectResponse) {
			g.Mounts = []container.MountPoint{{Destination: agentPath}, {Destination: sandbox.WorkspaceDir, RW: true}}
		},
	} {
		want, got := asked(t)
		change(&got)
		if what := differs(want, got); what != "" {
			t.Errorf("%s: %s differs", name, what)
		}
	}
}

// No field of what is asked of the engine can be other than it was asked for: one
// after the other is changed, in every way that its type allows, whether something
// was asked for or nothing. A field that a later API brings is among them.
func TestEveryFieldIsCompared(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, part := range []string{"Config", "HostConfig"} {
		root := func(g *container.InspectResponse) reflect.Value {
			if part == "Config" {
				return reflect.ValueOf(g.Config).Elem()
			}
			return reflect.ValueOf(g.HostConfig).Elem()
		}
		_, sample := asked(t)
		for _, c := range changes(part, root(&sample)) {
			want, got := asked(t)
			c.do(c.find(root(&got)))
			tried++
			if what := differs(want, got); (what == "") != free(c.at) {
				t.Errorf("%s, %s: it differs by %q", c.at, c.how, what)
			}
		}
	}
	if tried < 150 {
		t.Errorf("%d changes were tried", tried)
	}
}

// free are the fields that the image or an engine's version may set.
func free(at string) bool {
	return slices.Contains([]string{
		"Config.Env", "Config.OnBuild", "Config.StopSignal", "Config.StopTimeout", "Config.Shell", "Config.ArgsEscaped", "Config.Volumes", "Config.ExposedPorts",
		"Config.Healthcheck.Interval", "Config.Healthcheck.Timeout", "Config.Healthcheck.StartPeriod", "Config.Healthcheck.StartInterval", "Config.Healthcheck.Retries",
		"HostConfig.Runtime", "HostConfig.MaskedPaths", "HostConfig.ReadonlyPaths", "HostConfig.Mounts[2].BindOptions.ReadOnlyNonRecursive",
	}, at)
}

// change is one way to spoil one field.
type change struct {
	at, how string
	find    func(root reflect.Value) reflect.Value
	do      func(reflect.Value)
}

// changes lists those of a value and of all below it.
func changes(at string, v reflect.Value) []change {
	self := func(v reflect.Value) reflect.Value { return v }
	one := func(how string, do func(reflect.Value)) change { return change{at, how, self, do} }
	var all []change
	below := func(at string, step func(reflect.Value) reflect.Value) {
		for _, c := range changes(at, step(v)) {
			find := c.find
			c.find = func(root reflect.Value) reflect.Value { return find(step(root)) }
			all = append(all, c)
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := at + "." + v.Type().Field(i).Name
			if v.Type().Field(i).Anonymous {
				name = at
			}
			below(name, func(v reflect.Value) reflect.Value { return v.Field(i) })
		}
		return all
	case reflect.Pointer:
		if e := v.Type().Elem(); e.Kind() == reflect.Struct && e.NumField() == 0 {
			return nil // there is nothing to it
		}
		if v.IsNil() {
			return []change{one("set", func(v reflect.Value) { v.Set(reflect.New(v.Type().Elem())); fill(v.Elem()) })}
		}
		below(at, reflect.Value.Elem)
		return append(all, one("unset", reflect.Value.SetZero))
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			below(fmt.Sprintf("%s[%d]", at, i), func(v reflect.Value) reflect.Value { return v.Index(i) })
		}
		if v.Kind() == reflect.Array {
			return all
		}
		all = append(all, one("one more", func(v reflect.Value) {
			more := reflect.New(v.Type().Elem()).Elem()
			fill(more)
			v.Set(reflect.Append(v, more))
		}))
		if v.Len() > 0 {
			all = append(all, one("none", reflect.Value.SetZero))
		}
		return all
	case reflect.Map:
		return changesOfMap(v, one)
	default: // one value
	}
	all = append(all, one("another", fill))
	if !v.IsZero() {
		all = append(all, one("zero", reflect.Value.SetZero))
	}
	return all
}

func changesOfMap(v reflect.Value, one func(string, func(reflect.Value)) change) []change {
	all := []change{}
	if v.Len() == 0 {
		all = append(all, one("one more", func(v reflect.Value) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key)
			fill(value)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		}))
	}
	for _, key := range v.MapKeys() {
		all = append(all, one("without "+key.String(), func(v reflect.Value) { v.SetMapIndex(key, reflect.Value{}) }),
			one("another "+key.String(), func(v reflect.Value) {
				value := reflect.New(v.Type().Elem()).Elem()
				fill(value)
				v.SetMapIndex(key, value)
			}))
	}
	return all
}

// fill sets a value to one that it had not.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "other")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(v.Uint() + 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	default: // no field is of that kind
	}
}

// What is not in the request's own structure.
func TestDiffers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*container.InspectResponse){
		"another program":      func(g *container.InspectResponse) { g.Path = "/bin/sh" },
		"arguments":            func(g *container.InspectResponse) { g.Args = []string{"connect"} },
		"another image":        func(g *container.InspectResponse) { g.Image = "sha256:2" },
		"no configuration":     func(g *container.InspectResponse) { g.Config = nil },
		"no host's":            func(g *container.InspectResponse) { g.HostConfig = nil },
		"nothing":              func(g *container.InspectResponse) { g.ContainerJSONBase = nil },
		"no masked paths":      func(g *container.InspectResponse) { g.HostConfig.MaskedPaths = []string{} },
		"no read-only paths":   func(g *container.InspectResponse) { g.HostConfig.ReadonlyPaths = []string{} },
		"mounts in disorder":   func(g *container.InspectResponse) { slices.Reverse(g.HostConfig.Mounts) },
		"one more tmpfs":       func(g *container.InspectResponse) { g.HostConfig.Tmpfs["/etc"] = "rw" },
		"a capability changed": func(g *container.InspectResponse) { g.HostConfig.CapAdd = []string{"SETUID", "SETGID", "SYS_ADMIN"} },
		"a volume of its own": func(g *container.InspectResponse) {
			g.Mounts = []container.MountPoint{{Destination: "/data", RW: true}}
		},
	} {
		want, got := asked(t)
		change(&got)
		if differs(want, got) == "" {
			t.Errorf("%s: no difference", name)
		}
	}
	want, got := asked(t)
	want.HostConfig.Runtime, got.HostConfig.Runtime = "runsc", "runc"
	if what := differs(want, got); what != "HostConfig.Runtime" {
		t.Errorf("another OCI runtime than was asked for: it differs by %q", what)
	}
}

// Nothing but what [sandbox.Writable] names can be written by the programs of a
// sandbox, and all of that can.
func TestWritable(t *testing.T) {
	t.Parallel()
	r := &Runtime{cfg: Config{Agent: "/usr/libexec/caisson-agent"}}
	r.cfg.Engine = dockertest.Fake(t, "1.41", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	volumes := []string{"/data", "var/lib/x/", "/tmp", "/tmp/below", "/run"}
	for _, w := range []sandbox.Workspace{{Kind: sandbox.WorkspaceTmpfs}, {Kind: sandbox.WorkspaceVolume, Source: "v"}, {Kind: sandbox.WorkspaceHost, Source: "/srv/a"}} {
		plan, err := r.Plan(t.Context(), sandbox.Spec{Image: sandbox.Image{ID: "sha256:1", Volumes: volumes}, Identity: sandbox.Identity{UID: 20000, RunnerUID: 20001}, Workspace: w})
		if err != nil {
			t.Fatal(err)
		}
		var req request
		if err := json.Unmarshal(plan.Request, &req); err != nil {
			t.Fatal(err)
		}
		got := []string{"/dev/shm"} // every container has one
		for place := range req.HostConfig.Tmpfs {
			if place != runDir && place != privateDir { // closed to programs
				got = append(got, place)
			}
		}
		for _, m := range req.HostConfig.Mounts {
			if !m.ReadOnly {
				got = append(got, m.Target)
			}
		}
		want := sandbox.Writable(volumes)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" || !req.HostConfig.ReadonlyRootfs {
			t.Errorf("workspace %s: -want +got\n%s", w.Kind, diff)
		}
	}
}
