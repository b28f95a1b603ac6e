package dockerclient_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/internal/dockerclient/dockertest"
	"github.com/caisson-dev/caisson/sandbox"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	c := dockertest.Fake(t, "1.43", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/info") {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_, _ = fmt.Fprintf(w, `{"ServerVersion":"24.0.7","Driver":"overlay2","CgroupVersion":"2","CgroupDriver":"systemd",
			"MemoryLimit":true,"CpuCfsQuota":true,"PidsLimit":true,"DockerRootDir":"/var/lib/docker","Architecture":"x86_64",
			"SecurityOptions":["name=apparmor","name=seccomp,profile=builtin","name=cgroupns"],"DefaultRuntime":"runc",
			"Runtimes":{"runsc":{},"runc":{}},"SystemTime":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339Nano))
	})
	f, err := c.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Version != "24.0.7" || f.API != "1.43" || f.CgroupVersion != "2" || !f.Memory || f.Swap || !slices.Equal(f.OCIRuntimes, []string{"runc", "runsc"}) {
		t.Errorf("facts %+v", f)
	}
	if off := f.Skew - time.Hour; off.Abs() > f.SkewUncertainty+time.Second {
		t.Errorf("skew %s, give or take %s, want an hour", f.Skew, f.SkewUncertainty)
	}
	if profile, on := f.HasSecurity("seccomp"); !on || profile != "builtin" {
		t.Errorf("seccomp %q, %v", profile, on)
	}
	if _, on := f.HasSecurity("apparmor"); !on {
		t.Error("no AppArmor")
	}
	for _, name := range []string{"selinux", "sec", "cgroup", ""} {
		if _, on := f.HasSecurity(name); on {
			t.Errorf("%q is said to be on", name)
		}
	}
}

func TestFactsOfAFailingEngine(t *testing.T) {
	t.Parallel()
	c := dockertest.Fake(t, "1.43", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"message":"the store is broken"}`)
	})
	if _, err := c.Facts(t.Context()); !errors.Is(err, sandbox.Internal) || !strings.Contains(err.Error(), "the store is broken") {
		t.Errorf("error %v", err)
	}
	absent := newClient(t, dockerclient.Config{Host: "unix://" + socket(t)})
	if _, err := absent.Facts(t.Context()); !errors.Is(err, sandbox.Unavailable) {
		t.Errorf("error %v, want unavailable", err)
	}
}
