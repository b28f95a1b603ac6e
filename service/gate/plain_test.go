package gate_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// What people run all day passes without a question.
func TestPlainWorkPasses(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	project := files{
		"src/app/__init__.py": "", "src/app/core.py": "import json\nfrom .util import add\n\ndef total(rows):\n    return add(rows)\n", "src/app/util.py": "def add(rows):\n    return sum(rows)\n",
		"tests/conftest.py": "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'src'))\n", "tests/test_core.py": "from app.core import total\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
		"pyproject.toml": "[project]\nname = 'app'\n", "main.py": "import sys\nsys.path.insert(0, 'src')\nfrom app.core import total\nprint(total([1, 2]))\n",
		"Makefile": "PY ?= python3\n.PHONY: test\ntest: main.py\n\t@$(PY) -m pytest -q\nclean:\n\trm -rf build out/*.tmp\n", "run.sh": "#!/bin/bash\nset -euo pipefail\ncd src\npython3 -c 'import app.core'\n",
		".git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/x.git\n", ".git/HEAD": "ref: refs/heads/main\n",
		"web/package.json": `{"name":"web","main":"index.js","scripts":{"start":"node index.js"}}`, "web/index.js": "const path = require('path');\nconst {x} = require('./lib/x');\nconsole.log(path.join('a', String(x)));\n", "web/lib/x.js": "exports.x = 1;\n",
		"data.csv": "a,1\n", "notes.txt": "rm -rf /\n",
	}
	sh := func(c string) sandbox.Run { return command("bash", "-c", c) }
	for name, run := range map[string]sandbox.Run{
		"a program":         {Language: "python", File: "main.py"},
		"its tests":         command("python3", "-m", "pytest", "-q"),
		"pytest":            command("pytest", "tests/test_core.py", "-k", "total"),
		"unittest":          command("python3", "-m", "unittest", "discover", "-s", "tests"),
		"a script":          command("bash", "run.sh"),
		"make":              command("make", "test"),
		"make with a value": command("make", "test", "V=1"),
		"git":               sh("git status && git log --oneline | head -3"),
		"git in a folder":   sh("cd src && git diff --stat"),
		"npm":               sh("cd web && npm start"),
		"node":              {Language: "node", File: "web/index.js"},
		"a pipe":            sh("sort data.csv | uniq -c | awk '{print $1}' > out.txt"),
		"sed":               sh("sed -i 's/a/b/' data.csv; grep -rn total src | wc -l"),
		"its path":          sh("export PATH=$PATH:/usr/local/bin; python3 main.py"),
		"a loop":            sh("for f in src/app/*.py; do python3 -m py_compile \"$f\"; done"),
		"pip":               sh("python3 -m pip list; pip --version"),
		"a heredoc":         sh("cat > gen.py <<'E'\nprint(1)\nE\npython3 gen.py"),
		"code":              {Language: "python", Code: "import csv, collections\nfor r in csv.reader(open('data.csv')):\n    print(r)\n"},
		"numpy":             {Language: "python", Code: "import numpy as np\nprint(np.arange(3).sum())\n"},
		"a module":          command("python3", "-m", "json.tool", "web/package.json"),
		"a profile":         command("python3", "-m", "cProfile", "-s", "time", "main.py"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question(run, project, "")
			q.JudgesStarts = func(context.Context) (bool, error) { return true, nil }
			a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
			if err != nil {
				t.Fatal(err)
			}
			if a.Decision.Verdict != sandbox.Allow {
				t.Errorf("%s: %+v", a.Decision.Verdict, a.Decision.Findings)
			}
		})
	}
}
