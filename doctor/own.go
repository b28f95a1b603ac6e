package doctor

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/sandbox"
)

// machines maps what an engine calls its architecture to an ELF file's, and to
// what Go calls it.
var machines = map[string]struct {
	elf elf.Machine
	arc string
}{
	"x86_64": {elf.EM_X86_64, "amd64"}, "amd64": {elf.EM_X86_64, "amd64"},
	"aarch64": {elf.EM_AARCH64, "arm64"}, "arm64": {elf.EM_AARCH64, "arm64"},
	"armv7l": {elf.EM_ARM, "arm"}, "armv6l": {elf.EM_ARM, "arm"}, "i686": {elf.EM_386, "386"},
	"riscv64": {elf.EM_RISCV, "riscv64"}, "ppc64le": {elf.EM_PPC64, "ppc64le"}, "s390x": {elf.EM_S390, "s390x"},
}

// agent: every sandbox's first process. It has to run in any image of the
// engine's, as a root without the power to pass over permissions.
func agent(_ context.Context, r *round) finding {
	const mend = "set CAISSON_AGENT to the path of caisson-agent, which make build makes"
	if r.AgentErr != nil {
		return failed(r.AgentErr, mend)
	}
	st, err := os.Stat(r.Agent)
	if err != nil || !st.Mode().IsRegular() {
		return bad(mend, "%s is not a file: %v", r.Agent, err)
	}
	f, err := elf.Open(r.Agent)
	if err != nil {
		return bad(mend, "%s is not a program: %v", r.Agent, err)
	}
	defer f.Close()
	reach := st.Mode().Perm()
	if owner, known := ownerOf(r.Agent); known && owner == 0 {
		reach |= reach >> 6 // the container's root may what its owner may
	}
	if reach&0o005 != 0o005 {
		return bad("chmod 755 "+r.Agent, "%s has mode %04o, and no container may run it", r.Agent, st.Mode().Perm())
	}
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return bad(build(r.Agent, ""), "%s is not static: images without its loader cannot run it", r.Agent)
	}
	what := fmt.Sprintf("%s, static, %s", r.Agent, strings.ToLower(strings.TrimPrefix(f.Machine.String(), "EM_")))
	if r.factsErr != nil {
		return ok("%s", what)
	}
	want, known := machines[r.facts.Arch]
	if known && want.elf != f.Machine {
		return bad(build(r.Agent, want.arc), "%s, but the engine's containers are %s", what, r.facts.Arch)
	}
	return ok("%s", what)
}

// build is the command that makes an agent.
func build(path, arch string) string {
	if arch != "" {
		arch = "GOARCH=" + arch + " "
	}
	return "CGO_ENABLED=0 " + arch + "go build -trimpath -o " + path + " ./cmd/caisson-agent"
}

// runtimes: what can make sandboxes, and is the usual one among them?
func runtimes(ctx context.Context, r *round) finding {
	if r.Runtimes == nil {
		return warn("report this as a fault of caisson", "not known")
	}
	infos, err := r.Runtimes(ctx)
	if err != nil {
		return failed(err, "mend the runtimes that caisson is opened with")
	}
	var list []string
	var usual api.RuntimeInfo
	for _, i := range infos {
		name := i.Name
		if i.Default {
			usual, name = i, name+" (default)"
		}
		if i.Available {
			list = append(list, name+": "+i.Engine)
		} else {
			line := name + ": not available here: " + i.Error
			if i.Hint != "" {
				line += " (mend: " + i.Hint + ")"
			}
			list = append(list, line)
		}
	}
	all := strings.Join(list, "; ")
	switch {
	case usual.Name == "":
		return bad("set CAISSON_RUNTIME, or runtime in caisson.yaml, to one of these", "the default is none of them: %s", all)
	case !usual.Available:
		return bad(cmp.Or(usual.Hint, "use another one with --runtime"), "%s", all)
	}
	return ok("%s", all)
}

// service: do the parts fit together?
func service(_ context.Context, r *round) finding {
	switch {
	case r.Broken != nil:
		return failed(r.Broken, "mend the errors above, then ask again: caisson doctor")
	case r.service == nil:
		return bad("report this as a fault of caisson", "caisson was not put together, and nobody said why")
	}
	return ok("caisson starts")
}

// images: which languages are ready?
func images(ctx context.Context, r *round) finding {
	infos, err := r.service.Languages(ctx)
	if err != nil {
		return failed(err, "see what there is with: caisson images list")
	}
	var here, absent []string
	for _, i := range infos {
		if i.Present {
			here = append(here, i.Name)
		} else {
			absent = append(absent, i.Name)
		}
	}
	switch {
	case len(infos) == 0:
		return warn("name a language in caisson.yaml", "the catalogue is empty")
	case len(absent) > 0:
		what := "absent: " + strings.Join(absent, ", ")
		if len(here) > 0 {
			what += "; present: " + strings.Join(here, ", ")
		}
		return warn("caisson images build "+strings.Join(absent, " "), "%s (the first run of each makes it)", what)
	}
	return ok("present: %s", strings.Join(here, ", "))
}

// unpacked: the images of which bubblewrap makes sandboxes.
func unpacked(_ context.Context, r *round) finding {
	if r.Unpacked == nil {
		return ok("no image is")
	}
	roots, err := r.Unpacked()
	if err != nil {
		return failed(err, "remove the folder roots in "+r.StateDir+", and unpack the images again")
	}
	var list []string
	var old, total sandbox.Bytes
	newest := map[string]bool{}
	for _, root := range roots {
		ref := root.Image.Ref
		if st, err := os.Stat(root.Path); err != nil || !st.IsDir() {
			return bad("rm "+root.Path+".json, then: caisson images unpack "+ref, "of %s, the folder %s is missing", ref, root.Path)
		}
		if total += root.Size; newest[ref] {
			old += root.Size
			continue
		}
		newest[ref] = true
		list = append(list, ref)
	}
	what := fmt.Sprintf("%s, %s", strings.Join(list, ", "), total.Human())
	switch {
	case len(roots) == 0:
		return ok("no image is: sandboxes of bubblewrap have this host's programs, read-only")
	case old > 0:
		return warn("caisson images prune", "%s, of which %s are of images that newer ones replaced", what, old.Human())
	}
	return ok("%s", what)
}

// orphans: what dead processes have left.
func orphans(ctx context.Context, r *round) finding {
	left, err := r.service.Sweep(ctx, api.SweepOptions{DryRun: true})
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return warn("look yourself: caisson gc --dry-run", "not known: the engine took longer than %s to list them", r.Patience)
		}
		return failed(err, "look yourself: caisson gc --dry-run")
	}
	if len(left) == 0 {
		return ok("nothing is left behind")
	}
	kinds := map[string]int{}
	var order []string
	for _, o := range left {
		if kinds[o.Kind]++; kinds[o.Kind] == 1 {
			order = append(order, o.Kind)
		}
	}
	var parts []string
	for _, k := range order {
		parts = append(parts, fmt.Sprintf("%d of kind %s", kinds[k], k))
	}
	return warn("caisson gc", "left behind by dead processes: %s", strings.Join(parts, ", "))
}
