package enginetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/internal/recipe"
)

// build makes a program of this module once for the process.
type build struct {
	once sync.Once
	path string
	err  error
}

var agentBuild, commandBuild, scanBuild build

// Agent returns the path of a freshly built caisson-agent.
func Agent(t testing.TB) string {
	if path := os.Getenv(asUserAgent); path != "" {
		return path
	}
	return agentBuild.get(t, "caisson-agent", "-ldflags=-s -w")
}

// Command returns the path of a freshly built caisson. It has no agent beside
// it: CAISSON_AGENT must name [Agent].
func Command(t testing.TB) string { return commandBuild.get(t, "caisson", "-ldflags=-s -w") }

// Scanner returns the path of a freshly built caisson-scan, as CAISSON_SCAN names
// it. It needs a C compiler.
func Scanner(t testing.TB) string {
	return scanBuild.get(t, "caisson-scan", recipe.Scanner...)
}

func (b *build) get(t testing.TB, name string, flags ...string) string {
	t.Helper()
	b.once.Do(func() { b.path, b.err = compile(context.Background(), name, flags) }) // for all tests
	if b.err != nil {
		t.Fatalf("build %s: %v", name, b.err)
	}
	return b.path
}

// compile builds into the user's cache, under a name that its content gives, so
// that processes share it and none pulls it from under another.
func compile(ctx context.Context, name string, flags []string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "caisson", "enginetest")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "build")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fresh := filepath.Join(work, name)
	args := append([]string{"build", "-trimpath", "-o", fresh}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/"+name)...)
	cmd.Dir = root
	cgo := "0"
	if name == "caisson-scan" {
		cgo = "1" // the parsers of hostile text are C
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Chmod(fresh, 0o755); err != nil { // whatever the umask is
		return "", err
	}
	content, err := os.ReadFile(fresh)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%x", name, sha256.Sum256(content)))
	return path, os.Rename(fresh, path)
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the test's folder")
		}
		dir = parent
	}
}
