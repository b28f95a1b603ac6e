package caisson

import (
	"path/filepath"

	"github.com/caisson-dev/caisson/images"
	"github.com/caisson-dev/caisson/runtimes"
	"github.com/caisson-dev/caisson/runtimes/bubblewrap"
	"github.com/caisson-dev/caisson/runtimes/process"
	"github.com/caisson-dev/caisson/sandbox"
)

// ownHost are the runtimes of this host's own processes.
var ownHost = []named{{bubblewrap.Name, openBubblewrap}, {process.Name, openProcess}}

func openBubblewrap(h runtimes.Host) (runtimes.Runtime, error) {
	rt, err := bubblewrap.New(bubblewrap.Config{
		Agent: h.Agent, Base: h.Base, State: filepath.Join(h.State, bubblewrap.Name),
		Root: func(name string) (sandbox.ImageRoot, error) { return images.FindRoot(h.Images, name) },
	})
	if err != nil {
		return nil, err
	}
	return rt, nil
}

func openProcess(h runtimes.Host) (runtimes.Runtime, error) {
	rt, err := process.New(process.Config{Agent: h.Agent, Base: h.Base, State: filepath.Join(h.State, process.Name)})
	if err != nil {
		return nil, err
	}
	return rt, nil
}
