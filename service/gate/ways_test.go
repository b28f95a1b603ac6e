package gate_test

import (
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// Programs reach code by many ways that are no file on their command line. Each
// of these is judged, or asked about. docs/policy.md names those that are not.
func TestNoWayAround(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	for name, tt := range map[string]struct {
		run   sandbox.Run
		ws    files
		stdin string
	}{
		"bash -l":            {command("bash", "-l", "-c", "true"), nil, ""},
		"bash -i":            {command("bash", "-i", "-c", "true"), nil, ""},
		"bash --rcfile":      {command("bash", "--rcfile", "x", "-i"), files{"x": evilShell}, ""},
		"bash --init-file":   {command("bash", "--init-file", "x", "-i"), files{"x": evilShell}, ""},
		"bash -lc in sh":     {command("sh", "-c", "bash -lc true"), nil, ""},
		"python -i stdin":    {command("python3", "-i", "x.py"), files{"x.py": ""}, evilPython},
		"sh -c sh":           {command("sh", "-c", "sh"), nil, evilShell},
		"sh -c 'cat | sh'":   {command("sh", "-c", "cat | sh"), nil, evilShell},
		"sh source stdin":    {command("sh", "-c", ". /dev/stdin"), nil, evilShell},
		"bash /dev/stdin":    {command("bash", "/dev/stdin"), nil, evilShell},
		"python /dev/stdin":  {command("python3", "/dev/stdin"), nil, evilPython},
		"python /dev/fd/0":   {command("python3", "/dev/fd/0"), nil, evilPython},
		"env sh":             {command("env", "sh"), nil, evilShell},
		"timeout bash":       {command("timeout", "5", "bash"), nil, evilShell},
		"env python3 -":      {command("env", "python3", "-"), nil, evilPython},
		"/usr/bin/env bash":  {command("/usr/bin/env", "bash", "-s"), nil, evilShell},
		"node stdin":         {command("node"), nil, evilNode},
		"node -":             {command("node", "-"), nil, evilNode},
		"script with sh":     {sandbox.Run{Language: "shell", Code: "sh"}, nil, evilShell},
		"py code runs sh":    {sandbox.Run{Language: "python", Code: "import subprocess\nsubprocess.run(['sh'])"}, nil, evilShell},
		"xargs sh -c":        {command("xargs", "-I{}", "sh", "-c", "{}"), nil, "rm -rf /\n"},
		"parallel":           {command("parallel"), nil, "rm -rf /\n"},
		"perl -e":            {command("perl", "-e", "system('rm -rf /')"), nil, ""},
		"perl x.pl":          {command("perl", "x.pl"), files{"x.pl": "system('rm -rf /')"}, ""},
		"perl stdin":         {command("perl"), nil, "system('rm -rf /')"},
		"awk":                {command("awk", "BEGIN{system(\"rm -rf /\")}"), nil, ""},
		"awk -f":             {command("awk", "-f", "x.awk"), files{"x.awk": "BEGIN{system(\"rm -rf /\")}"}, ""},
		"sed e":              {command("sed", "1e rm -rf /", "f"), nil, ""},
		"sed -f":             {command("sed", "-f", "x.sed", "f"), files{"x.sed": "1e rm -rf /"}, ""},
		"find -exec":         {command("find", "/", "-exec", "rm", "-rf", "{}", "+"), nil, ""},
		"tar checkpoint":     {command("tar", "cf", "x", "--checkpoint=1", "--checkpoint-action=exec=rm -rf /", "."), nil, ""},
		"git -c":             {command("git", "-c", "core.fsmonitor=rm -rf /", "status"), nil, ""},
		"git alias":          {command("git", "-c", "alias.x=!rm -rf /", "x"), nil, ""},
		"git -C sub":         {command("git", "-C", "sub", "commit"), files{"sub/.git/hooks/pre-commit": "#!/bin/sh\n" + evilShell, "sub/.git/config": ""}, ""},
		"cd sub git":         {command("sh", "-c", "cd sub && git commit"), files{"sub/.git/hooks/pre-commit": "#!/bin/sh\n" + evilShell, "sub/.git/config": ""}, ""},
		"git hook in py":     {sandbox.Run{Language: "python", Code: "import subprocess\nsubprocess.run(['git','commit'])"}, files{".git/hooks/pre-commit": "#!/bin/sh\n" + evilShell, ".git/config": ""}, ""},
		"git file .git":      {command("git", "commit"), files{".git": "gitdir: other", "other/hooks/pre-commit": "#!/bin/sh\n" + evilShell, "other/config": ""}, ""},
		"bare repo":          {command("git", "status"), files{"HEAD": "ref: refs/heads/m", "config": "[core]\n\tfsmonitor=rm -rf /\n", "objects/x": "", "refs/x": ""}, ""},
		"make -f":            {command("make", "-f", "x.mk"), files{"x.mk": "all:\n\trm -rf /\n"}, ""},
		"make -C":            {command("make", "-C", "sub"), files{"sub/Makefile": "all:\n\trm -rf /\n"}, ""},
		"cd make":            {command("sh", "-c", "cd sub; make"), files{"sub/Makefile": "all:\n\trm -rf /\n"}, ""},
		"make --eval":        {command("make", "--eval=all:;rm -rf /"), nil, ""},
		"make var":           {command("make", "CC=rm -rf /"), files{"Makefile": "all:\n\t$(CC)\n"}, ""},
		"make multi":         {command("make"), files{"Makefile": "define X\nrm -rf /\nendef\nall:\n\t$(X)\n"}, ""},
		"make continued":     {command("make"), files{"Makefile": "all:\n\trm \\\n\t-rf /\n"}, ""},
		"make .RECIPEPREFIX": {command("make"), files{"Makefile": ".RECIPEPREFIX = >\nall:\n>rm -rf /\n"}, ""},
		"npm --prefix":       {command("npm", "--prefix", "sub", "run", "x"), files{"sub/package.json": `{"scripts":{"x":"rm -rf /"}}`}, ""},
		"cd npm":             {command("sh", "-c", "cd sub && npm run x"), files{"sub/package.json": `{"scripts":{"x":"rm -rf /"}}`}, ""},
		"npm stop":           {command("npm", "install"), files{"package.json": `{"scripts":{"postinstall":"rm -rf /"}}`}, ""},
		"cd pytest":          {command("sh", "-c", "cd sub && pytest"), files{"sub/conftest.py": evilPython}, ""},
		"pip install .":      {command("pip", "install", "."), files{"setup.py": evilPython}, ""},
		"pip -e":             {command("pip", "install", "-e", "."), files{"setup.py": evilPython}, ""},
		"python -m pip":      {command("python3", "-m", "pip", "install", "."), files{"setup.py": evilPython}, ""},
		"cProfile":           {command("python3", "-m", "cProfile", "x.py"), files{"x.py": evilPython}, ""},
		"pdb":                {command("python3", "-m", "pdb", "x.py"), files{"x.py": evilPython}, ""},
		"trace":              {command("python3", "-m", "trace", "--trace", "x.py"), files{"x.py": evilPython}, ""},
		"coverage":           {command("coverage", "run", "x.py"), files{"x.py": evilPython}, ""},
		"timeit":             {command("python3", "-m", "timeit", "import shutil; shutil.rmtree('/')"), nil, ""},
		"doctest":            {command("python3", "-m", "doctest", "x.txt"), files{"x.txt": ">>> import shutil; shutil.rmtree('/')\n"}, ""},
		"unittest":           {command("python3", "-m", "unittest"), files{"test_x.py": evilPython}, ""},
		"package __main__":   {command("python3", "-m", "pkg"), files{"pkg/__init__.py": "", "pkg/__main__.py": evilPython}, ""},
		"dir __main__":       {command("python3", "pkg"), files{"pkg/__main__.py": evilPython}, ""},
		"zipapp":             {command("python3", "x.pyz"), files{"x.pyz": "PK\x03\x04"}, ""},
		"pyc":                {command("python3", "x.pyc"), files{"x.pyc": "\xa7\x0d\x0d\x0a\x00\x00"}, ""},
		"pth":                {command("python3", "-c", "import site; site.addsitedir('.')"), files{"x.pth": "import shutil; shutil.rmtree('/')\n"}, ""},
		"import .pyc cached": {sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "python3 x.py"}}, files{"x.py": "import m", "m.py": "", "__pycache__/m.cpython-311.pyc": "x"}, ""},
		"node_modules .bin":  {command("npx", "x"), files{"node_modules/.bin/x": evilShell, "package.json": "{}"}, ""},
		"node --require":     {command("node", "--require", "./x.js", "-e", "1"), files{"x.js": evilNode}, ""},
		"node -r":            {command("node", "-r", "./x.js", "y.js"), files{"x.js": evilNode, "y.js": ""}, ""},
		"node --import":      {command("node", "--import", "./x.mjs", "y.js"), files{"x.mjs": "import fs from 'fs'; fs.rmSync('/', {recursive: true, force: true})", "y.js": ""}, ""},
		"node import":        {sandbox.Run{Language: "node", File: "a.mjs"}, files{"a.mjs": "import './b.mjs'", "b.mjs": "import fs from 'fs'; fs.rmSync('/', {recursive: true, force: true})"}, ""},
		"node exports":       {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "require('l')", "node_modules/l/package.json": `{"exports":{".":{"import":"./x.mjs","require":"./r.js"}}}`, "node_modules/l/r.js": evilNode, "node_modules/l/x.mjs": ""}, ""},
		"node subpath":       {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "require('l/sub')", "node_modules/l/package.json": `{"exports":{"./sub":"./r.js"}}`, "node_modules/l/r.js": evilNode}, ""},
		"node imports":       {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "require('#x')", "package.json": `{"imports":{"#x":"./r.js"}}`, "r.js": evilNode}, ""},
		"node self":          {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "require('me')", "package.json": `{"name":"me","exports":"./r.js"}`, "r.js": evilNode}, ""},
		"node worker":        {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "new (require('worker_threads').Worker)('./b.js')", "b.js": evilNode}, ""},
		"node fork":          {sandbox.Run{Language: "node", File: "a.js"}, files{"a.js": "require('child_process').fork('./b.js')", "b.js": evilNode}, ""},
		"runpy":              {sandbox.Run{Language: "python", Code: "import runpy; runpy.run_path('b.py')"}, files{"b.py": evilPython}, ""},
		"exec open":          {sandbox.Run{Language: "python", Code: "exec(open('b.py').read())"}, files{"b.py": evilPython}, ""},
		"execfile var":       {sandbox.Run{Language: "python", Code: "import sys; exec(open(sys.argv[1]).read())"}, files{"b.py": evilPython}, ""},
		"multiprocessing":    {sandbox.Run{Language: "python", Code: "import importlib.util as u; s=u.spec_from_file_location('b','b.py'); m=u.module_from_spec(s); s.loader.exec_module(m)"}, files{"b.py": evilPython}, ""},
		"ctypes":             {sandbox.Run{Language: "python", Code: "import ctypes; ctypes.CDLL('./x.so')"}, files{"x.so": "\x7fELF"}, ""},
		"dir /tmp":           {sandbox.Run{Language: "shell", Command: []string{"sh", "x.sh"}, Dir: "/tmp"}, nil, ""},
		"env BASH_FUNC":      {sandbox.Run{Language: "shell", Command: []string{"sh", "-c", "ls"}, Env: []string{"BASH_FUNC_ls%%=() { rm -rf /; }"}}, nil, ""},
		"sh env assign":      {command("sh", "-c", "LD_PRELOAD=./x.so ls"), files{"x.so": "\x7fELF"}, ""},
		"sh BASH_ENV":        {command("sh", "-c", "BASH_ENV=x bash -c true"), files{"x": evilShell}, ""},
		"sh export PATH":     {command("sh", "-c", "PATH=.:$PATH; ls"), files{"ls": evilShell}, ""},
		"sh NODE_OPTIONS":    {command("sh", "-c", "NODE_OPTIONS='--require ./x.js' node -e 1"), files{"x.js": evilNode}, ""},
		"py os.environ":      {sandbox.Run{Language: "python", Code: "import os,subprocess\nos.environ['BASH_ENV']='x'\nsubprocess.run(['bash','-c','true'])"}, files{"x": evilShell}, ""},
		"py PATH":            {sandbox.Run{Language: "python", Code: "import os,subprocess\nos.environ['PATH']='.:'+os.environ['PATH']\nsubprocess.run(['ls'])"}, files{"ls": "#!/bin/sh\n" + evilShell}, ""},
		"py subprocess env":  {sandbox.Run{Language: "python", Code: "import subprocess\nsubprocess.run(['bash','-c','true'], env={'BASH_ENV':'x'})"}, files{"x": evilShell}, ""},
		"ld.so":              {command("/lib64/ld-linux-x86-64.so.2", "./x"), files{"x": "\x7fELF"}, ""},
		"busybox":            {command("busybox", "sh", "x.sh"), files{"x.sh": evilShell}, ""},
		"setsid":             {command("setsid", "sh", "x.sh"), files{"x.sh": evilShell}, ""},
		"script -c":          {command("script", "-c", "rm -rf /", "x"), nil, ""},
		"gdb":                {command("gdb", "-ex", "shell rm -rf /"), nil, ""},
		"gcc then run":       {command("sh", "-c", "gcc x.c -o x && ./x"), files{"x.c": "int main(){system(\"rm -rf /\");}"}, ""},
		"cp then run":        {command("sh", "-c", "cp data.txt y.sh && sh y.sh"), files{"data.txt": evilShell}, ""},
		"base64 decode":      {command("sh", "-c", "base64 -d d.txt > y.sh; sh y.sh"), files{"d.txt": "cm0gLXJmIC8K"}, ""},
		"link then run":      {command("sh", "-c", "ln -s data.txt y.sh; sh y.sh"), files{"data.txt": evilShell}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := question(tt.run, tt.ws, tt.stdin)
			a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
			if err != nil {
				t.Fatal(err)
			}
			if a.Decision.Verdict == sandbox.Allow {
				t.Errorf("ALLOWED: %+v", a.Decision.Findings)
			}
		})
	}
}
