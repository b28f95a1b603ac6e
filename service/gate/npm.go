package gate

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/sandbox"
)

// followNPM judges the scripts of the package.json files that are meant.
func (w *walker) followNPM(ctx context.Context, r policy.Ref) error {
	dirs, err := w.folders(ctx, w.elsewhere(r, "--prefix", "-C", "--cwd", "--workspace", "-w", "--dir"), "package.json", "node_modules")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := w.packageScripts(ctx, dir, r); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) packageScripts(ctx context.Context, dir string, r policy.Ref) error {
	name := path.Join(dir, "package.json")
	entries, err := w.list(ctx, dir)
	if err != nil {
		return err
	}
	if entries["node_modules"] != "" {
		w.cannot(path.Join(dir, "node_modules"), r.Name+" runs programs out of it, which are not followed")
	}
	if entries["package.json"] == "" || w.units[name] != nil {
		return nil
	}
	b, err := w.ws.ReadFile(ctx, name, mostFile)
	if err != nil {
		w.cannot(name, "it cannot be read before: "+err.Error())
		return nil
	}
	w.units[name] = &unit{name: name, lang: "settings", code: b, inPlace: true}
	var p struct {
		Name, Version string
		Scripts       map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal(b, &p); err != nil {
		w.cannot(name, "it is not JSON")
		return nil
	}
	if err := w.settingsOfNPM(ctx, dir, entries, r); err != nil {
		return err
	}
	behind := behindScript(r.Args)
	for _, key := range sortedKeys(p.Scripts) {
		u := &unit{name: name + " (" + key + ")", lang: "bash", code: []byte(p.Scripts[key]), shown: true, dir: path.Join(sandbox.WorkspaceDir, dir), by: w.by}
		u.start = w.passedOn(w.by, &unit{}, policy.Ref{})
		for _, n := range npmVariable().FindAllString(p.Scripts[key], -1) {
			u.start.Env[n] = policy.Passed()
		}
		u.start.Env["npm_package_name"], u.start.Env["npm_package_version"] = policy.Told(p.Name), policy.Told(p.Version)
		u.start.Env["npm_lifecycle_event"] = policy.Told(key)
		if words, ok := behind[key]; ok {
			u.code = slices.Concat(u.code, []byte(words))
		}
		w.units[u.name] = u
		if err := w.examine(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// npmVariable finds the variables that npm makes of settings and packages.
var npmVariable = lazyregexp.New(`npm_(?:config|package)_[A-Za-z0-9_]+`)

// settingsOfNPM looks for what has scripts run by another program than a shell.
func (w *walker) settingsOfNPM(ctx context.Context, dir string, entries map[string]string, r policy.Ref) error {
	for _, word := range r.Args {
		if strings.HasPrefix(word, "--script-shell") || strings.HasPrefix(word, "--shell") || strings.HasPrefix(word, "--node-options") {
			w.cannot(r.Name, word+" names a program that scripts are run by, or code that it loads")
		}
	}
	for _, u := range w.order {
		if m := npmShell().Find(u.code); m != nil && u.lang != "settings" {
			w.cannot(r.Name, string(m)+" names a program that scripts are run by, or code that it loads")
		}
	}
	for _, n := range []string{".npmrc", ".yarnrc", ".yarnrc.yml"} {
		if entries[n] == "" {
			continue
		}
		name := path.Join(dir, n)
		b, err := w.ws.ReadFile(ctx, name, mostFile)
		if err != nil {
			w.cannot(name, "it cannot be read before: "+err.Error())
			continue
		}
		if w.units[name] == nil {
			u := &unit{name: name, lang: "settings", code: b, inPlace: true}
			w.units[name] = u
			w.order = append(w.order, u)
		}
		if m := npmProgram().Find(b); m != nil {
			w.cannot(name, "it sets "+strings.TrimSpace(string(m))+", which runs or loads programs")
		}
	}
	return ctx.Err()
}

var (
	npmShell   = lazyregexp.New(`(?i)npm_config_(script_shell|shell|node_options|onload_script)`)
	npmProgram = lazyregexp.New(`(?im)^\s*["']?(script-shell|shell|node-options|onload-script|git|editor|yarn-path|yarnPath|plugins|nodeOptions)["']?\s*[=:\s]`)
)

// behindScript are the words of a command line that a script gets behind its own,
// by the script that it runs.
func behindScript(args []string) map[string]string {
	behind := map[string]string{}
	for i, key := range args {
		var words strings.Builder
		options := true
		for _, word := range args[i+1:] {
			if options && word == "--" {
				options = false
				continue
			}
			words.WriteString(" " + quote(word))
		}
		if _, known := behind[key]; !known && !strings.HasPrefix(key, "-") && words.Len() > 0 {
			behind[key] = words.String()
		}
	}
	return behind
}
