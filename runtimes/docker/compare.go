package docker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// differs names the first setting in which a container is other than what was
// asked for, in the engine's terms. It goes by the request's own structure, so
// that no field is left out: one that was not asked for has to be what it is when
// nobody asks. What an engine writes otherwise for the same is in [normal].
func differs(asked request, got container.InspectResponse) string {
	if got.ContainerJSONBase == nil || got.HostConfig == nil || got.Config == nil {
		return "HostConfig or Config, which is missing,"
	}
	c := asked.Config
	switch made := (request{Config: got.Config, HostConfig: got.HostConfig}); {
	case got.Path != c.Entrypoint[0] || !slices.Equal(got.Args, slices.Concat(c.Entrypoint[1:], c.Cmd)):
		return "Path or Args"
	case strings.HasPrefix(c.Image, "sha256:") && got.Image != c.Image:
		return "Image"
	case slices.ContainsFunc(got.Mounts, func(m container.MountPoint) bool { return m.RW && !planned(asked.HostConfig.Mounts, m.Destination) }):
		return "Mounts"
	default:
		return unlike("", reflect.ValueOf(asked), reflect.ValueOf(made))
	}
}

// planned reports whether something writable is mounted at a place on purpose.
func planned(mounts []mount.Mount, place string) bool {
	return slices.ContainsFunc(mounts, func(m mount.Mount) bool { return m.Target == place && !m.ReadOnly })
}

// normal has the settings that engines change without harm, by their path
// without indices, each with what is still right for a value that was asked for.
var normal = map[string]func(asked, made reflect.Value) bool{
	// Without a value of ours they are the image's. No program of a sandbox is
	// started with them: the agent is, and it is static, stopped by SIGKILL, and has
	// its own words for what it starts.
	"Config.Env":         anything,
	"Config.OnBuild":     anything,
	"Config.StopSignal":  anything,
	"Config.StopTimeout": anything,
	"Config.Shell":       anything,
	"Config.ArgsEscaped": anything,
	// A tmpfs is put at each of them, and [differs] looks for mounts without.
	"Config.Volumes":      anything,
	"Config.ExposedPorts": anything, // published by PortBindings alone
	"Config.Labels":       includes, // beside the image's
	// Test is NONE; how often and how long it is not done is the image's.
	"Config.Healthcheck.Interval":      anything,
	"Config.Healthcheck.Timeout":       anything,
	"Config.Healthcheck.StartPeriod":   anything,
	"Config.Healthcheck.StartInterval": anything,
	"Config.Healthcheck.Retries":       anything,

	"HostConfig.CapAdd":             sameCapabilities,
	"HostConfig.CapDrop":            sameCapabilities,
	"HostConfig.SecurityOpt":        sameSet,
	"HostConfig.Runtime":            ifAsked, // else the engine's default, by its name
	"HostConfig.MaskedPaths":        notEmptied,
	"HostConfig.ReadonlyPaths":      notEmptied,
	"HostConfig.RestartPolicy.Name": orElse("no"),
	// Since API 1.44 on behalf of older clients, for which a mount was never
	// read-only below another.
	"HostConfig.Mounts.BindOptions.ReadOnlyNonRecursive": anything,
}

func anything(_, _ reflect.Value) bool { return true }

func ifAsked(asked, made reflect.Value) bool {
	return asked.IsZero() || asked.Interface() == made.Interface()
}

func orElse(same string) func(asked, made reflect.Value) bool {
	return func(asked, made reflect.Value) bool {
		return asked.String() == made.String() || asked.IsZero() && made.String() == same
	}
}

func includes(asked, made reflect.Value) bool {
	for _, k := range asked.MapKeys() {
		if v := made.MapIndex(k); !v.IsValid() || !reflect.DeepEqual(v.Interface(), asked.MapIndex(k).Interface()) {
			return false
		}
	}
	return true
}

// notEmptied: the engine fills in its own where nothing is asked, and nothing
// where it is asked for none.
func notEmptied(_, made reflect.Value) bool { return made.IsNil() || made.Len() > 0 }

func sameSet(asked, made reflect.Value) bool {
	return slices.Equal(sorted(asked, strings.Clone), sorted(made, strings.Clone))
}

// sameCapabilities: some engines leave out the prefix, and all of them sort.
func sameCapabilities(asked, made reflect.Value) bool {
	name := func(s string) string { return strings.TrimPrefix(strings.ToUpper(s), "CAP_") }
	return slices.Equal(sorted(asked, name), sorted(made, name))
}

func sorted(list reflect.Value, as func(string) string) []string {
	var all []string
	for i := range list.Len() {
		all = append(all, as(list.Index(i).String()))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unlike names the first place below at where two values differ, "" where they
// do not. A list or map that is absent is an empty one, and a value that was not
// asked for is absent or zero.
func unlike(at string, asked, made reflect.Value) string {
	if same := normal[plain(at)]; same != nil {
		if same(asked, made) {
			return ""
		}
		return at
	}
	switch asked.Kind() {
	case reflect.Pointer:
		switch {
		case made.IsNil() && asked.IsNil():
			return ""
		case made.IsNil():
			return at
		case asked.IsNil():
			return unlike(at, reflect.Zero(asked.Type().Elem()), made.Elem())
		}
		return unlike(at, asked.Elem(), made.Elem())
	case reflect.Struct:
		return unlikeFields(at, asked, made)
	case reflect.Slice, reflect.Array:
		if asked.Len() != made.Len() {
			return at
		}
		for i := range asked.Len() {
			if what := unlike(fmt.Sprintf("%s[%d]", at, i), asked.Index(i), made.Index(i)); what != "" {
				return what
			}
		}
		return ""
	case reflect.Map:
		if asked.Len() != made.Len() || !includes(asked, made) {
			return at
		}
		return ""
	default: // one value
	}
	if asked.Interface() != made.Interface() {
		return at
	}
	return ""
}

func unlikeFields(at string, asked, made reflect.Value) string {
	for i := range asked.NumField() {
		field, below := asked.Type().Field(i), at
		if !field.Anonymous {
			below = strings.TrimPrefix(at+"."+field.Name, ".")
		}
		if what := unlike(below, asked.Field(i), made.Field(i)); what != "" {
			return what
		}
	}
	return ""
}

// plain is a path without indices.
func plain(at string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(at, "[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, at, _ = strings.Cut(rest, "]")
	}
}
