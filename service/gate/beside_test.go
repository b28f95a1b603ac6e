package gate_test

import (
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
	"github.com/caisson-dev/caisson/service/gate"
)

// What lies beside the workspace, where programs can write too, is judged by its bytes
// once it is started, with what it loads from there.
func TestStartBeside(t *testing.T) {
	t.Parallel()
	const evilPy, evilSh, evilJS = "import shutil; shutil.rmtree('/')", "rm -rf --no-preserve-root /", "require('fs').rmSync('/', {recursive: true, force: true})"
	p := startsPlaceWith(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, startsOnly, "python", "node")
	judged := startsPlaceWith(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, func(g *gate.Gate) manager.Gate { return g.Judge }, "python")
	for name, tt := range map[string]struct {
		on       *place
		language string
		text     string
		passes   bool
	}{
		"Python":               {p, "python", "echo 'print(1)' >/tmp/x.py; python3 /tmp/x.py", true},
		"Python that is evil":  {p, "python", "echo \"" + evilPy + "\" >/tmp/x.py; python3 /tmp/x.py", false},
		"from there":           {p, "python", "cd /tmp; echo 'print(1)' >x.py; python3 x.py", true},
		"from there, evil":     {p, "python", "cd /tmp; echo \"" + evilPy + "\" >x.py; python3 x.py", false},
		"code there":           {p, "python", "cd /tmp; echo 'print(1)' >m.py; python3 -B -c 'import m'", true},
		"code there, evil":     {p, "python", "cd /tmp; echo \"" + evilPy + "\" >m.py; python3 -B -c 'import m'", false},
		"a module by name":     {p, "python", "cd /tmp; echo 'print(1)' >m.py; python3 -B -m m", true},
		"one, evil":            {p, "python", "cd /tmp; echo \"" + evilPy + "\" >m.py; python3 -B -m m", false},
		"a module":             {p, "python", "echo 'import m' >/tmp/x.py; echo 'print(1)' >/tmp/m.py; python3 -B /tmp/x.py", true},
		"a module, evil":       {p, "python", "echo 'import m' >/tmp/x.py; echo \"" + evilPy + "\" >/tmp/m.py; python3 -B /tmp/x.py", false},
		"a module's module":    {p, "python", "mkdir -p /tmp/d/p; echo 'import p' >/tmp/d/x.py; echo 'from . import m' >/tmp/d/p/__init__.py; echo \"" + evilPy + "\" >/tmp/d/p/m.py; python3 -B /tmp/d/x.py", false},
		"bytecode":             {p, "python", "mkdir -p /tmp/__pycache__; echo 'import m' >/tmp/x.py; echo >/tmp/m.py; echo x >/tmp/__pycache__/m.cpython-311.pyc; python3 /tmp/x.py", false},
		"a home":               {p, "python", "echo 'print(1)' >~/x.py; python3 ~/x.py", true},
		"shared memory":        {p, "python", "echo 'print(1)' >/dev/shm/x.py; python3 /dev/shm/x.py", false},
		"a link to elsewhere":  {p, "python", "echo \"" + evilPy + "\" >/dev/shm/x.py; ln -s /dev/shm/x.py /tmp/x.py; python3 /tmp/x.py", false},
		"a shebang":            {p, "python", "printf '#!/usr/bin/python3\\nimport m' >/tmp/x; echo 'print(1)' >/tmp/m.py; chmod +x /tmp/x; /tmp/x", true},
		"a shebang's module":   {p, "python", "printf '#!/usr/bin/python3\\nimport m' >/tmp/x; echo \"" + evilPy + "\" >/tmp/m.py; chmod +x /tmp/x; /tmp/x", false},
		"a shell":              {p, "python", "echo 'echo 1' >/tmp/x.sh; sh /tmp/x.sh", true},
		"a shell that is evil": {p, "python", "echo '" + evilSh + "' >/tmp/x.sh; sh /tmp/x.sh", false},
		"a shell that sources": {p, "python", "echo '. /tmp/y' >/tmp/x.sh; echo '" + evilSh + "' >/tmp/y; sh /tmp/x.sh", false},
		"Node":                 {p, "node", "echo 'require(\"./m\")' >/tmp/x.js; echo 'console.log(1)' >/tmp/m.js; node /tmp/x.js", true},
		"Node's module":        {p, "node", "echo 'require(\"./m\")' >/tmp/x.js; echo \"" + evilJS + "\" >/tmp/m.js; node /tmp/x.js", false},
		"Node's package":       {p, "node", "mkdir -p /tmp/node_modules/m; echo 'require(\"m\")' >/tmp/x.js; echo \"" + evilJS + "\" >/tmp/node_modules/m/index.js; node /tmp/x.js", false},
		"Node's shebang":       {p, "node", "printf '#!/usr/bin/node\\nrequire(\"./m\")' >/tmp/x; echo \"" + evilJS + "\" >/tmp/m.js; chmod +x /tmp/x; /tmp/x", false},
		"written by a command": {judged, "python", "cat >/tmp/x.py <<E\nprint(1)\nE\npython3 /tmp/x.py", true},
		"written, and unseen":  {judged, "python", "printf 'print(%d)' 1 >/tmp/x.py; python3 /tmp/x.py", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := tt.on.Run(t.Context(), sandbox.Run{
				Language: tt.language, Command: []string{"bash", "-ec", tt.text + "\necho passed"}, Approve: sandbox.ApproveNever,
			}, sandbox.Streams{})
			if err != nil {
				t.Fatal(err)
			}
			refused := slices.ContainsFunc(res.Starts, func(s sandbox.Start) bool { return s.Verdict == sandbox.Deny })
			if passed := string(res.Stdout) == "1\npassed\n"; passed != tt.passes || passed == refused {
				t.Errorf("%+v %q %q\n%+v", res.Exit, res.Stdout, res.Stderr, res.Starts)
			}
		})
	}
}
