// Package enginetest gives a test a Docker Engine with all that caisson needs
// to work on it: a fresh agent, the languages' images, a place of its own for
// sockets, a holder's name of its own. What the test leaves behind is removed,
// and is the test's failure.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/docker"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/store/sqlite"
)

// Soak is the variable that asks for the long variants of tests.
const Soak = "CAISSON_SOAK"

// Soaking reports whether the long variants are asked for.
func Soaking() bool { return os.Getenv(Soak) == "1" }

const labelHolder = docker.Label + "holder"

// Kit is an engine and what belongs to one test on it.
type Kit struct {
	Engine *dockerclient.Client
	API    *client.Client
	Agent  string // path of the agent's binary
	Base   string // folder for sockets, private to the test
	Holder string // label of everything that the test makes
	Images *images.Store
	TLS    string // folder of the certificates for the engine, where it is spoken to by TLS
}

// New returns a Kit. Without an engine the test is skipped with the reason, or
// fails where [dockertest.Require] asks for one. At the test's end nothing may
// carry its holder's label any more.
func New(t testing.TB) *Kit {
	t.Helper()
	return newKit(t, dockertest.Engine(t))
}

func newKit(t testing.TB, engine *dockerclient.Client) *Kit {
	t.Helper()
	api, err := engine.API(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sweepDead(api)
	// A short path: a socket's is bounded.
	base, err := os.MkdirTemp("/tmp", "cais")
	if err != nil {
		t.Fatal(err)
	}
	store, err := images.New(images.Config{Engine: engine, StateDir: filepath.Join(base, "images")})
	if err != nil {
		t.Fatal(err)
	}
	k := &Kit{
		Engine: engine, API: api, Agent: Agent(t), Base: filepath.Join(base, "s"), Images: store,
		Holder: holderPrefix + strconv.Itoa(os.Getpid()) + "/" + sandbox.NewID().Short(),
	}
	t.Cleanup(func() {
		for _, what := range k.Leftovers(context.Background()) {
			t.Errorf("left behind: %s", what)
		}
		k.remove(context.Background())
		_ = os.RemoveAll(base)
	})
	return k
}

// holderPrefix begins a test's holder. A caisson that finds it cannot tell whether
// such a holder lives, and so leaves its things alone; [sweepDead] can.
const holderPrefix = "enginetest/"

// Image returns the image of a language, and skips or fails the test where it
// is absent: making it takes too long for a test of something else.
func (k *Kit) Image(t testing.TB, language string) sandbox.Image {
	t.Helper()
	lang, err := k.Images.Language(language)
	if err != nil {
		t.Fatal(err)
	}
	img, _, err := k.Images.Lookup(t.Context(), lang.Image)
	if err != nil {
		text := fmt.Sprintf("needs the image %s: %v (make it with: caisson images build %s)", lang.Image, err, language)
		if os.Getenv(dockertest.Require) == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	return img
}

// Runtime returns a docker runtime in the kit's own place.
func (k *Kit) Runtime(t testing.TB) *docker.Runtime {
	t.Helper()
	rt, err := docker.New(docker.Config{Engine: k.Engine, Agent: k.Agent, Base: k.Base, Holder: k.Holder})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// Runtimes are what [Kit.Runtime] returns alone.
func (k *Kit) Runtimes(t testing.TB) *runtimes.Registry {
	t.Helper()
	return runtimes.Only(docker.Name, k.Runtime(t))
}

// Patience is how long an agent may take in tests that are not about time: on a
// busy machine one that is well may get no turn for seconds.
const Patience = time.Minute

// Manager returns a manager on the kit's runtime that judges nothing. It is
// closed at the test's end.
func (k *Kit) Manager(t testing.TB) *manager.Manager {
	t.Helper()
	m, err := manager.New(manager.Config{Runtimes: k.Runtimes(t), Images: k.Images, Gate: manager.Unjudged, Holder: k.Holder, Patience: Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("close the manager: %v", err)
		}
	})
	return m
}

// Leftovers names the containers, volumes and folders of this kit's that exist.
func (k *Kit) Leftovers(ctx context.Context) []string {
	var found []string
	mine := filters.NewArgs(filters.Arg("label", labelHolder+"="+k.Holder))
	containers, err := k.API.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	if err != nil {
		found = append(found, "containers, perhaps: "+err.Error())
	}
	for _, c := range containers {
		if len(c.Names) == 0 && k.going(ctx, c.ID) {
			continue
		}
		found = append(found, "container "+c.ID+" "+strings.Join(c.Names, " "))
	}
	volumes, err := k.API.VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		found = append(found, "volumes, perhaps: "+err.Error())
	}
	for _, v := range volumes.Volumes {
		found = append(found, "volume "+v.Name)
	}
	folders, _ := os.ReadDir(k.Base) // absent where nothing was made
	for _, f := range folders {
		found = append(found, "folder "+f.Name())
	}
	return found
}

// going reports whether a container that the engine has taken the name from,
// which is late in a removal, is gone soon. Who removes by name finds nothing
// any more by then.
func (k *Kit) going(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	gone, failed := k.API.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-gone:
		return true
	case err := <-failed:
		return errors.Is(dockerclient.Wrap(err, "wait"), sandbox.NotFound)
	}
}

func (k *Kit) remove(ctx context.Context) { removeOwned(ctx, k.API, labelHolder+"="+k.Holder) }

// RemoveSessions removes what the sessions of a state folder hold, for tests that end
// before they have.
func (k *Kit) RemoveSessions(t testing.TB, state string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(state, "state.db")); err != nil {
		return // there were none
	}
	ctx := context.Background() // the test's own is over
	s, err := sqlite.Open(ctx, sqlite.Config{Dir: state})
	if err != nil {
		t.Errorf("remove what sessions have left: %v", err)
		return
	}
	defer s.Close()
	removeOwned(ctx, k.API, labelHolder+"=state:"+s.ID())
}

// removeOwned removes what carries a label. What cannot be removed stays for
// the next run to try.
func removeOwned(ctx context.Context, api *client.Client, label string) {
	mine := filters.NewArgs(filters.Arg("label", label))
	containers, _ := api.ContainerList(ctx, container.ListOptions{All: true, Filters: mine})
	for _, c := range containers {
		_ = api.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
	}
	volumes, err := api.VolumeList(ctx, volume.ListOptions{Filters: mine})
	if err != nil {
		return
	}
	for _, v := range volumes.Volumes {
		_ = api.VolumeRemove(ctx, v.Name, true)
	}
}

var sweepOnce sync.Once

// sweepDead removes what test processes that were killed have left, once a
// process.
func sweepDead(api *client.Client) {
	sweepOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		all := filters.NewArgs(filters.Arg("label", labelHolder))
		containers, _ := api.ContainerList(ctx, container.ListOptions{All: true, Filters: all})
		for _, c := range containers {
			if holder := c.Labels[labelHolder]; deadTest(holder) {
				removeOwned(ctx, api, labelHolder+"="+holder)
			}
		}
	})
}

func deadTest(holder string) bool {
	rest, ok := strings.CutPrefix(holder, holderPrefix)
	if !ok {
		return false
	}
	number, _, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	return err == nil && syscall.Kill(pid, 0) == syscall.ESRCH
}
