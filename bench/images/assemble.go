//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/bench/measure"
	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// language is one that is assembled. Its packages are those of the catalogue.
type language struct {
	name     string
	packages []string
}

// base is what every language's image has, in the catalogue.
var base = []string{"git", "procps"}

var languages = []language{
	{"python", []string{"python3", "python-is-python3", "python3-pytest", "tzdata"}},
	{"node", []string{"nodejs"}},
	{"shell", nil},
}

// assemble makes the languages' images from nothing, one after the other, beside
// a bare mmdebstrap and docker import for each. A smoke run makes the smallest.
func assemble(ctx context.Context, s *measure.Suite, f *fixture) (err error) {
	const name = "assembling offline"
	if !s.Wants(name) {
		return nil
	}
	chosen, rounds := languages, 3
	if s.Smoke {
		chosen, rounds = languages[2:], 1
	}
	defer func() { err = errors.Join(err, f.removeMade(ctx, chosen)) }()
	samples := map[string][]float64{}
	ways := []func(context.Context, []language) ([]float64, error){f.assembled, f.bare}
	for round := range rounds {
		for i := range ways {
			way := (i + round) % len(ways)
			took, err := ways[way](ctx, chosen)
			if err != nil {
				return err
			}
			total := 0.0
			for i, l := range chosen {
				total += took[i]
				samples[subject(way, l.name)] = append(samples[subject(way, l.name)], took[i])
			}
			samples[subject(way, "all")] = append(samples[subject(way, "all")], total)
		}
	}
	set := measure.Set{Name: name, Unit: "s"}
	for _, l := range append(chosen, language{name: "all"}) {
		for way := range ways {
			set.Subjects = append(set.Subjects, measure.Subject{Name: subject(way, l.name)})
		}
		row := measure.Row{Name: "images/assemble/" + l.name, Own: subject(0, l.name), Peer: subject(1, l.name)}
		switch l.name {
		case "python": // it is the first: the base is made for it
			row.Bar = measure.AtMost("p50 <= 1.5 x bare mmdebstrap and docker import", 1.5)
		case "all":
			row.Bar = measure.AtMost("p50 <= bare mmdebstrap and docker import for each", 1)
		}
		set.Rows = append(set.Rows, row)
	}
	if err := s.Report(set, samples); err != nil {
		return err
	}
	return f.sizes(ctx, s, chosen)
}

func subject(way int, name string) string { return []string{"caisson", "bare"}[way] + ", " + name }

func (f *fixture) ref(way int, name string) string {
	return []string{"caisson", "bare"}[way] + "-bench/" + name + f.unique + ":1"
}

// assembled makes images with a state folder that holds nothing.
func (f *fixture) assembled(ctx context.Context, chosen []language) (took []float64, err error) {
	text := "version: 1\nbase: {suite: bookworm, packages: [" + strings.Join(base, ", ") + "]}\nlanguages:\n"
	for _, l := range chosen {
		text += fmt.Sprintf("  %s: {image: %q, suffixes: [.%s], packages: [%s], run_code: [\"{file}\"], run_file: [\"{file}\"]}\n",
			l.name, f.ref(0, l.name), l.name, strings.Join(l.packages, ", "))
	}
	catalogue, err := images.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	state, err := os.MkdirTemp(f.Dir, "assemble")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	store, err := images.New(images.Config{Engine: f.Engine, Catalogue: catalogue, StateDir: state})
	if err != nil {
		return nil, err
	}
	return f.each(ctx, 0, chosen, func(ctx context.Context, l language) error {
		_, err := store.Make(ctx, f.ref(0, l.name), sandbox.MakeImageOptions{Way: sandbox.ImageAssembled, Again: true})
		return err
	})
}

// bare makes the same trees with mmdebstrap alone.
func (f *fixture) bare(ctx context.Context, chosen []language) ([]float64, error) {
	return f.each(ctx, 1, chosen, func(ctx context.Context, l language) error {
		include := "--include=" + strings.Join(slices.Concat(base, l.packages), ",")
		const script = `TMPDIR=$1 mmdebstrap --mode=root --format=tar --quiet --variant=essential --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr $2 bookworm - | docker import - "$3"`
		return f.command(ctx, "bash", "-o", "pipefail", "-c", script, "bash", f.Dir, include, f.ref(1, l.name))
	})
}

// each times what is done for every language, with its image gone before.
func (f *fixture) each(ctx context.Context, way int, chosen []language, do func(context.Context, language) error) (took []float64, err error) {
	if err := f.removeAll(ctx, way, chosen); err != nil {
		return nil, err
	}
	for _, l := range chosen {
		began := time.Now()
		if err := do(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		took = append(took, time.Since(began).Seconds())
	}
	return took, nil
}

func (f *fixture) removeAll(ctx context.Context, way int, chosen []language) (err error) {
	for _, l := range chosen {
		err = errors.Join(err, f.remove(ctx, f.ref(way, l.name)))
	}
	return err
}

func (f *fixture) removeMade(ctx context.Context, chosen []language) error {
	return errors.Join(f.removeAll(ctx, 0, chosen), f.removeAll(ctx, 1, chosen))
}

// sizes tells how large the images are, alone and together.
func (f *fixture) sizes(ctx context.Context, s *measure.Suite, chosen []language) error {
	for way, who := range []string{"caisson", "bare"} {
		layers := map[string]sandbox.Bytes{} // by the content of what lies below and in them
		var alone []string
		for _, l := range chosen {
			found, err := f.API.ImageInspect(ctx, f.ref(way, l.name))
			if err != nil {
				return dockerclient.Wrap(err, "inspect %s", l.name)
			}
			history, err := f.API.ImageHistory(ctx, f.ref(way, l.name))
			if err != nil {
				return dockerclient.Wrap(err, "inspect %s", l.name)
			}
			for i := range min(len(history), len(found.RootFS.Layers)) {
				layers[strings.Join(found.RootFS.Layers[:i+1], " ")] = sandbox.Bytes(history[len(history)-1-i].Size)
			}
			alone = append(alone, l.name+" "+sandbox.Bytes(found.Size).Human())
		}
		together := sandbox.Bytes(0)
		for _, size := range layers {
			together += size
		}
		s.Note("%s: %s; together %s in %d layers", who, strings.Join(alone, ", "), together.Human(), len(layers))
	}
	return nil
}
