package docker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/caisson-dev/caisson/sandbox"
)

// A sandbox's users have numbers of their own, which no image knows the names
// of. So each sandbox has an /etc/passwd and an /etc/group of its own, mounted
// over the image's: what the image has, and its users. The engine must share our
// folders for that; elsewhere the variables USER and HOME have to do.

// userFiles are what there is a list of names in, in the private folder and in
// /etc.
var userFiles = []string{"passwd", "group"}

// mostNames bounds what is read of an image's list of names.
const mostNames = 1 << 20

// fewNames are in place of an image's, where it has none or they cannot be read.
var fewNames = map[string]string{
	"passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nwww-data:x:33:33:www-data:/var/www:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
	"group":  "root:x:0:\ndaemon:x:1:\ntty:x:5:\nwww-data:x:33:\nusers:x:100:\nnogroup:x:65534:\n",
}

// makeUsers makes the lists in the private folder, empty: they must be there when
// the container is made.
func (r *Runtime) makeUsers(id sandbox.ID) error {
	for _, m := range r.usersMounts(id) {
		err := os.WriteFile(m.Source, nil, 0o600)
		if err == nil {
			err = os.Chmod(m.Source, 0o644) // whatever the umask is: programs read it
		}
		if err != nil {
			return fmt.Errorf("make the list of users: %w", err)
		}
	}
	return nil
}

// usersMounts says where the lists are mounted.
func (r *Runtime) usersMounts(id sandbox.ID) (mounts []mount.Mount) {
	for _, name := range userFiles {
		mounts = append(mounts, mount.Mount{Type: mount.TypeBind, Source: filepath.Join(r.folder(id), name), Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts
}

// writeUsers fills the lists of a container that is not started yet.
func (r *Runtime) writeUsers(id sandbox.ID, spec sandbox.Spec, got container.InspectResponse) error {
	for _, name := range userFiles {
		theirs := imageFile(got, "etc/"+name)
		if theirs == "" {
			theirs = fewNames[name]
		}
		if err := os.WriteFile(filepath.Join(r.folder(id), name), []byte(withUsers(name, theirs, spec.Image.User(), spec.Identity)), 0o600); err != nil {
			return fmt.Errorf("write the list of users: %w", err)
		}
	}
	return nil
}

// withUsers is a list of names with a sandbox's users, who take their names and
// numbers from whomever has them. user is the name of the first.
func withUsers(list, theirs, user string, who sandbox.Identity) string {
	var b strings.Builder
	ours := map[string]int{user: who.UID, "runner": who.RunnerUID}
	for line := range strings.Lines(theirs) {
		line = strings.TrimRight(line, "\r\n")
		fields := strings.SplitN(line, ":", 4)
		if len(fields) < 4 {
			continue
		}
		if _, taken := ours[fields[0]]; taken || fields[2] == strconv.Itoa(who.UID) || fields[2] == strconv.Itoa(who.RunnerUID) {
			continue
		}
		b.WriteString(line + "\n")
	}
	for _, name := range []string{user, "runner"} {
		fmt.Fprintf(&b, "%s:x:%d:", name, ours[name])
		if list == "passwd" {
			fmt.Fprintf(&b, "%d:%s:%s:/bin/sh", ours[name], name, sandbox.HomeDir)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// imageFile reads a file of a container's image where the engine keeps its
// layers, or "" where that cannot be done: with other storage, or by who may not
// look there. Nothing of an image leads out of its layer.
func imageFile(got container.InspectResponse, name string) string {
	if got.ContainerJSONBase == nil || got.GraphDriver.Name != "overlay2" {
		return ""
	}
	for _, layer := range filepath.SplitList(got.GraphDriver.Data["LowerDir"]) {
		text, err := layerFile(layer, name)
		if !errors.Is(err, fs.ErrNotExist) {
			return text // an upper layer counts, also where it takes the file away
		}
	}
	return ""
}

func layerFile(layer, name string) (string, error) {
	root, err := os.OpenRoot(layer)
	if err != nil {
		return "", errors.New("the layer cannot be read")
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > mostNames {
		return "", errors.New("it is no list")
	}
	text, err := io.ReadAll(io.LimitReader(f, mostNames))
	return string(text), err
}
