package docker_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/agent/client"
	"github.com/caisson-dev/caisson/internal/enginetest"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/sandbox"
)

// A container that was made for nobody gets the workspace of who claims it, as theirs:
// a volume, a folder of the host, or the one in memory that it has.
func TestArrive(t *testing.T) {
	t.Parallel()
	kit := enginetest.New(t)
	image := kit.Image(t, "shell")
	rt := kit.Runtime(t)
	if !rt.Adopts(sandbox.Workspace{Kind: sandbox.WorkspaceVolume}) {
		t.Skip("needs root on the engine's host")
	}
	who := sandbox.Identity{UID: 71234, RunnerUID: 71235}
	folder := t.TempDir()
	if err := errors.Join(os.Chown(folder, who.UID, who.UID), os.WriteFile(filepath.Join(folder, "there"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	volume := runtimes.VolumePrefix + string(sandbox.NewID())
	spec := sandbox.Spec{Language: "shell", Image: image, Holder: kit.Holder, Identity: who}
	for name, tt := range map[string]struct {
		workspace sandbox.Workspace
		mounts    int
		finds     string
	}{
		"volume": {sandbox.Workspace{Kind: sandbox.WorkspaceVolume, Source: volume}, 2, "file "},
		"host":   {sandbox.Workspace{Kind: sandbox.WorkspaceHost, Source: folder}, 2, "file there "},
		"tmpfs":  {sandbox.Workspace{Kind: sandbox.WorkspaceTmpfs}, 1, "file "},
	} {
		t.Run(name, func(t *testing.T) {
			spec, id := spec, sandbox.NewID()
			made := spec
			made.Identity = sandbox.IdentityFor(id)
			plan, err := rt.Plan(t.Context(), made)
			if err != nil {
				t.Fatal(err)
			}
			inst, err := rt.Create(t.Context(), id, plan)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := inst.Destroy(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			spec.Workspace, spec.Session = tt.workspace, "theirs"
			if plan, err = rt.Plan(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
			if err := inst.(runtimes.Claimer).Claim(t.Context(), plan); err != nil {
				t.Fatal(err)
			}
			conn, err := inst.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c, err := client.New(t.Context(), conn, client.Config{Secret: make([]byte, 32), Patience: enginetest.Patience, Claim: &client.Claim{Identity: who, Env: []string{"PATH=/usr/bin:/bin"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			var said bytes.Buffer
			script := `touch file ~/mine; ls | tr '\n' ' '; stat -c '%u %g' . file ~ | tr '\n' ' '; id -un; grep -c ' /workspace ' /proc/self/mountinfo`
			out, err := c.Run(t.Context(), client.Command{Argv: []string{"sh", "-c", "export HOME=" + sandbox.HomeDir + "; cd /workspace; " + script}, Stdout: &said, Stderr: &said, Timeout: enginetest.Patience, MaxOutput: 1 << 16, Reap: true})
			want := tt.finds + "71234 71234 71234 71234 71234 71234 sandbox\n" + fmt.Sprintln(tt.mounts)
			if err != nil || out.Code != 0 || said.String() != want {
				t.Errorf("%v, %+v: %q, want %q", err, out.Exit, said.String(), want)
			}
		})
	}
	// The volume outlives the container that it arrived in, and is its session's.
	handles, err := rt.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range handles {
		if h.Name != volume {
			continue
		}
		if h.Kind != runtimes.KindVolume || h.Holder != kit.Holder || h.Session != "theirs" {
			t.Errorf("the volume is listed as %+v", h)
		}
		left, err := rt.Attach(t.Context(), h)
		if err == nil {
			err = left.Destroy(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the volume went with its container")
}
