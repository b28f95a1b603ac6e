//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/docker/docker/api/types/build"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// pull fetches an image of four layers of 16 MiB, which do not compress, from a
// registry on loopback: by caisson's command, and by docker's.
func pull(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "pull of 64 MiB in four layers"
	if !s.Wants(name) {
		return nil
	}
	if _, err := exec.LookPath("docker-registry"); err != nil {
		s.Note("no pulls: docker-registry is not there (apt-get install docker-registry)")
		return nil
	}
	addr, err := f.registry(ctx)
	if err != nil {
		return err
	}
	ref := addr + "/bench/" + f.unique + ":1"
	if err := f.build(ctx, ref); err != nil {
		return err
	}
	if err := f.command(ctx, "docker", "push", "-q", ref); err != nil {
		return err
	}
	if err := f.remove(ctx, ref); err != nil {
		return err
	}
	// One that is there already is not fetched: each sample leaves none.
	sample := func(program string, args ...string) func(context.Context) (float64, error) {
		timed := measure.Millis(func(ctx context.Context) error { return f.command(ctx, program, append(args, ref)...) })
		return func(ctx context.Context) (float64, error) {
			took, err := timed(ctx)
			return took, errors.Join(err, f.remove(ctx, ref))
		}
	}
	return s.Measure(ctx, measure.Set{
		Name: name, Unit: "ms", Rounds: 9, Warmup: 1,
		Subjects: []measure.Subject{
			{Name: "caisson images pull", Sample: sample(f.Program("caisson"), "images", "pull")},
			{Name: "docker pull", Sample: sample("docker", "pull")},
		},
		Rows: []measure.Row{{Name: "images/pull", Own: "caisson images pull", Peer: "docker pull", Bar: measure.AtMost("p50 <= 1.1 x docker pull", 1.1)}},
	})
}

// registry runs a registry on loopback that ends with the rig.
func (f *fixture) registry(ctx context.Context) (addr string, err error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = ln.Addr().String()
	if err := ln.Close(); err != nil {
		return "", err
	}
	config := filepath.Join(f.Dir, "registry.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", filepath.Join(f.Dir, "registry"), addr)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "docker-registry", "serve", config)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	f.Defer(func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return addr, conn.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return "", fmt.Errorf("the registry does not listen: %w", err)
		}
	}
}

// build makes an image of noise, which no engine has.
func (f *fixture) build(ctx context.Context, ref string) error {
	var folder bytes.Buffer
	w := tar.NewWriter(&folder)
	add := func(name string, data []byte) error {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	dockerfile := "FROM scratch\n"
	noise := make([]byte, 16<<20)
	for _, name := range []string{"a", "b", "c", "d"} {
		_, _ = rand.Read(noise) // it does not fail
		if err := add(name, noise); err != nil {
			return err
		}
		dockerfile += "COPY " + name + " /" + name + "\n"
	}
	if err := errors.Join(add("Dockerfile", []byte(dockerfile)), w.Close()); err != nil {
		return err
	}
	resp, err := f.API.ImageBuild(ctx, &folder, build.ImageBuildOptions{Tags: []string{ref}, Remove: true, Version: build.BuilderV1})
	if err != nil {
		return dockerclient.Wrap(err, "build an image")
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(said, []byte("Successfully built")) {
		err = fmt.Errorf("build an image: %s", said)
	}
	return err
}
