package images

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/client"

	"github.com/caisson-dev/caisson/internal/dockerclient"
)

// dpkgStatus is where Debian keeps what is installed.
const dpkgStatus = "var/lib/dpkg/status"

// packages lists the Debian packages of an image as "name=version", sorted. It
// reads the image's layers from the engine: no container has to be made for it.
func packages(ctx context.Context, api *client.Client, id string) ([]string, error) {
	body, err := api.ImageSave(ctx, []string{id})
	if err != nil {
		return nil, dockerclient.Wrap(err, "read image %s", short(id))
	}
	defer func() { _ = body.Close() }()
	found, err := packagesOf(body)
	return found, dockerclient.Wrap(err, "read image %s", short(id))
}

// packagesOf reads an image in the engine's form of an archive. Its layers may
// come in any order; the list of them says which is the upper one.
func packagesOf(r io.Reader) ([]string, error) {
	byLayer := map[string][]string{}
	var order []struct{ Layers []string }
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch {
		case h.Name == "manifest.json":
			if err := json.NewDecoder(in).Decode(&order); err != nil {
				return nil, fmt.Errorf("the list of its layers: %w", err)
			}
		case h.Typeflag == tar.TypeReg:
			if list := packagesOfLayer(in); list != nil {
				byLayer[h.Name] = list
			}
		}
	}
	if len(order) != 1 {
		return nil, fmt.Errorf("%d images in one", len(order))
	}
	for _, name := range slices.Backward(order[0].Layers) {
		if list, ok := byLayer[name]; ok {
			return list, nil
		}
	}
	return nil, nil
}

// packagesOfLayer is nil for what is no layer, and for one that leaves what is
// installed as it was.
func packagesOfLayer(r io.Reader) []string {
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err != nil { // its end, or something that is no tar
			return nil
		}
		if path.Clean(strings.TrimPrefix(h.Name, "/")) == dpkgStatus {
			return installed(in)
		}
	}
}

// installed reads dpkg's status: paragraphs of "Key: value".
func installed(r io.Reader) []string {
	list := []string{}
	fields := map[string]string{}
	flush := func() {
		if strings.HasSuffix(fields["Status"], " installed") {
			list = append(list, fields["Package"]+"="+fields["Version"])
		}
		clear(fields)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "":
			flush()
		case ok && (key == "Package" || key == "Status" || key == "Version"):
			fields[key] = value
		}
	}
	flush()
	slices.Sort(list)
	return list
}

// changes says in what packages an image differs from what it was.
func changes(was, is []string) []string {
	versions := func(list []string) map[string]string {
		m := map[string]string{}
		for _, p := range list {
			name, version, _ := strings.Cut(p, "=")
			m[name] = version
		}
		return m
	}
	before, after := versions(was), versions(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, had := before[name]
		now, has := after[name]
		switch {
		case !had:
			list = append(list, name+" "+now+" is new")
		case !has:
			list = append(list, name+" "+old+" is gone")
		case old != now:
			list = append(list, name+" was "+old+" and is "+now)
		}
	}
	return list
}

// whatDiffers says why an image is not the pinned one, for the end of a
// sentence: "" where that is not known.
func whatDiffers(list []string, known bool) string {
	switch {
	case !known:
		return ""
	case len(list) == 0:
		return ": its packages are the same, so it was changed by hand or made in another way"
	case len(list) > 3:
		return fmt.Sprintf(": %s, and %d packages more", strings.Join(list[:3], ", "), len(list)-3)
	}
	return ": " + strings.Join(list, ", ")
}
