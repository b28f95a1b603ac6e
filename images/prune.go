package images

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
	"github.com/caisson-dev/caisson/sandbox"
)

// Prune removes the images that this catalogue's recipes made once and would
// not make now, the bases of such recipes, and what was unpacked of images whose
// name a newer one has. What somebody else made, what
// the lock file pins and what a container uses is left. With dryRun it only
// says what it would do.
func (s *Store) Prune(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error) {
	roots, err := s.pruneRoots(dryRun)
	if err != nil {
		return roots, err
	}
	made, err := s.pruneMade(ctx, dryRun)
	return append(roots, made...), err
}

// pruneMade removes images of the engine, and bases.
func (s *Store) pruneMade(ctx context.Context, dryRun bool) ([]sandbox.PrunedImage, error) {
	api, err := s.cfg.Engine.API(ctx)
	if err != nil {
		return nil, err
	}
	pins, err := ReadPins(s.cfg.LockFile)
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, p := range pins {
		keep[p.ID] = true
	}
	recipes, bases := map[string]bool{}, map[string]bool{}
	for ref := range s.cfg.Catalogue.images {
		rec, _ := s.cfg.Catalogue.recipeFor(ref)
		recipes[rec.digest()], recipes[s.buildDigest(rec)] = true, true
		if rec.Assembled {
			bases[rec.baseName()] = true
		}
	}
	found, err := s.list(ctx, api)
	if err != nil {
		return nil, err
	}
	pruned := []sandbox.PrunedImage{}
	for _, img := range found {
		if keep[img.ID] || named(img) && recipes[img.Labels[LabelRecipe]] {
			continue
		}
		p := sandbox.PrunedImage{Name: img.ID, Size: sandbox.Bytes(img.Size)}
		if !dryRun {
			if p.InUse, err = remove(ctx, api, img.ID); err != nil {
				return pruned, err
			}
		}
		pruned = append(pruned, p)
	}
	files, err := s.pruneBases(bases, dryRun)
	return append(pruned, files...), err
}

// list returns the images that caisson made for this catalogue's languages.
func (s *Store) list(ctx context.Context, api *client.Client) ([]image.Summary, error) {
	all, err := api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", LabelRecipe))})
	if err != nil {
		return nil, dockerclient.Wrap(err, "list images")
	}
	var ours []image.Summary
	for _, img := range all {
		if _, ok := s.cfg.Catalogue.names[img.Labels[LabelLanguage]]; !ok || !s.oursByName(img.RepoTags) {
			continue
		}
		made, err := made(ctx, api, img.ID)
		if err != nil {
			return nil, err
		}
		if made {
			ours = append(ours, img)
		}
	}
	return ours, nil
}

// oursByName reports whether an image has no name but of the catalogue's
// repositories: one that somebody gave another name is theirs, too.
func (s *Store) oursByName(tags []string) bool {
	return !slices.ContainsFunc(tags, func(tag string) bool {
		return tag != "<none>:<none>" && !slices.ContainsFunc(slices.Collect(maps.Keys(s.cfg.Catalogue.images)), func(ref string) bool {
			return repositoryOf(ref) == repositoryOf(tag)
		})
	})
}

// madeBy begins what the history of an assembled image says.
const madeBy = "caisson: "

// made reports whether caisson made an image, and not somebody who built on
// one of caisson's: they inherit its labels, but what was done last is theirs.
// An assembly is told by its steps, a build by the labels that it ends with.
func made(ctx context.Context, api *client.Client, id string) (bool, error) {
	steps, err := api.ImageHistory(ctx, id)
	err = dockerclient.Wrap(err, "read the history of image %s", short(id))
	if errors.Is(err, sandbox.NotFound) || err == nil && len(steps) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	last := steps[0].CreatedBy
	return strings.HasPrefix(last, madeBy) || strings.Contains(last, "LABEL") && strings.Contains(last, LabelRecipe+"="), nil
}

// named reports whether an image has a name still: one that was made again has
// lost it to the newer one.
func named(img image.Summary) bool {
	return slices.ContainsFunc(img.RepoTags, func(tag string) bool { return tag != "<none>:<none>" })
}

// remove takes an image away unless a container uses it.
func remove(ctx context.Context, api *client.Client, id string) (inUse bool, err error) {
	_, err = api.ImageRemove(ctx, id, image.RemoveOptions{PruneChildren: true})
	err = dockerclient.Wrap(err, "remove image %s", short(id))
	switch {
	case errors.Is(err, sandbox.Conflict):
		return true, nil
	case errors.Is(err, sandbox.NotFound):
		return false, nil
	}
	return false, err
}

// pruneBases removes the kept bases that no recipe stands on.
func (s *Store) pruneBases(wanted map[string]bool, dryRun bool) ([]sandbox.PrunedImage, error) {
	found, err := filepath.Glob(s.path("cache", "base-*.tar"))
	if err != nil {
		return nil, sandbox.Errorf(sandbox.Internal, "list bases: %w", err)
	}
	var pruned []sandbox.PrunedImage
	for _, name := range found {
		st, err := os.Stat(name)
		if err != nil || wanted[strings.TrimSuffix(filepath.Base(name), ".tar")] {
			continue
		}
		if !dryRun {
			if err := os.Remove(name); err != nil {
				return pruned, diskError(err, "remove a base")
			}
		}
		pruned = append(pruned, sandbox.PrunedImage{Name: name, Size: sandbox.Bytes(st.Size())})
	}
	return pruned, nil
}
