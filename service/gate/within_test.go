package gate_test

import (
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// The same for ways that stand in the program's own text.
func TestNoWayAroundFromWithin(t *testing.T) {
	t.Parallel()
	p := newPolicy(t)
	node := func(f string) sandbox.Run { return sandbox.Run{Language: "node", File: f} }
	py := func(c string) sandbox.Run { return sandbox.Run{Language: "python", Code: c} }
	sh := func(c string) sandbox.Run { return command("sh", "-c", c) }
	for name, tt := range map[string]struct {
		run   sandbox.Run
		ws    files
		stdin string
	}{
		"import()":           {node("a.js"), files{"a.js": "import('./b.mjs')", "b.mjs": "import fs from 'fs'; fs.rmSync('/', {recursive: true, force: true})"}, ""},
		"import() var":       {node("a.js"), files{"a.js": "import(process.argv[2])", "b.mjs": evilNode}, ""},
		"require var":        {node("a.js"), files{"a.js": "require(process.argv[2])", "b.js": evilNode}, ""},
		"type module":        {node("a.js"), files{"a.js": "import './b.js'", "package.json": `{"type":"module"}`, "b.js": "import fs from 'fs'; fs.rmSync('/', {recursive: true, force: true})"}, ""},
		"createRequire":      {node("a.mjs"), files{"a.mjs": "import {createRequire} from 'module'; const require = createRequire(import.meta.url); require('./b.js')", "b.js": evilNode}, ""},
		"createRequire2":     {node("a.mjs"), files{"a.mjs": "import {createRequire as c} from 'module'; c(import.meta.url)('./b.js')", "b.js": evilNode}, ""},
		"module.require":     {node("a.js"), files{"a.js": "module.require('./b')", "b.js": evilNode}, ""},
		"process.mainModule": {node("a.js"), files{"a.js": "process.mainModule.require('./b')", "b.js": evilNode}, ""},
		"vm":                 {node("a.js"), files{"a.js": "require('vm').runInThisContext(require('fs').readFileSync('b.txt','utf8'))", "b.txt": evilNode}, ""},
		"new Function":       {node("a.js"), files{"a.js": "new Function(require('fs').readFileSync('b.txt','utf8'))()", "b.txt": evilNode}, ""},
		"node dir":           {command("node", "."), files{"package.json": `{"main":"m.js"}`, "m.js": evilNode}, ""},
		"node no ext":        {command("node", "main"), files{"main.js": evilNode}, ""},
		"node in sub":        {sandbox.Run{Language: "node", Command: []string{"node", "a"}, Dir: "s"}, files{"s/a.js": evilNode}, ""},
		"python no ext":      {command("python3", "main"), files{"main": evilPython}, ""},
		"python -X":          {command("python3", "-X", "importtime", "x.py"), files{"x.py": evilPython}, ""},
		"python -":           {command("python3", "-c", "import sys; exec(sys.stdin.read())"), nil, evilPython},
		"input eval":         {py("eval(input())"), nil, evilPython},
		"code.interact":      {py("import code; code.interact()"), nil, evilPython},
		"pdb set_trace":      {py("import pdb; pdb.set_trace()"), nil, evilPython},
		"breakpoint":         {py("breakpoint()"), nil, evilPython},
		"__import__":         {py("__import__('b')"), files{"b.py": evilPython}, ""},
		"importlib":          {py("import importlib; importlib.import_module('b')"), files{"b.py": evilPython}, ""},
		"importlib pkg":      {py("import importlib; importlib.import_module('.b', 'p')"), files{"p/__init__.py": "", "p/b.py": evilPython}, ""},
		"from import *":      {py("from p import *"), files{"p/__init__.py": "__all__=['b']", "p/b.py": evilPython}, ""},
		"relative":           {sandbox.Run{Language: "python", Command: []string{"python3", "-m", "p.a"}}, files{"p/__init__.py": "", "p/a.py": "from .b import x", "p/b.py": evilPython}, ""},
		"zipimport":          {py("import sys; sys.path.insert(0,'x.zip'); import b"), files{"x.zip": "PK\x03\x04\x00"}, ""},
		"egg":                {py("import zipimport; zipimport.zipimporter('x.zip').load_module('b')"), files{"x.zip": "PK\x03\x04\x00"}, ""},
		"multiproc spawn":    {py("import multiprocessing as m; m.set_start_method('spawn'); m.Process(target=__import__('b').f).start()"), files{"b.py": evilPython}, ""},
		"os.execv":           {py("import os; os.execv('/usr/bin/python3',['python3','b.py'])"), files{"b.py": evilPython}, ""},
		"os.posix_spawn":     {py("import os; os.posix_spawn('./b.sh',['b.sh'],{})"), files{"b.sh": "#!/bin/sh\n" + evilShell}, ""},
		"asyncio":            {py("import asyncio; asyncio.run(asyncio.create_subprocess_exec('sh','b.sh'))"), files{"b.sh": evilShell}, ""},
		"sh < file":          {sh("sh < b.sh"), files{"b.sh": evilShell}, ""},
		"cat file | sh":      {sh("cat b.sh | sh"), files{"b.sh": evilShell}, ""},
		"bash <(cat)":        {command("bash", "-c", "bash <(cat b.sh)"), files{"b.sh": evilShell}, ""},
		"$(<f)":              {command("bash", "-c", "eval \"$(<b.sh)\""), files{"b.sh": evilShell}, ""},
		"$(cat f)":           {sh("$(cat b.sh)"), files{"b.sh": evilShell}, ""},
		"find exec sh":       {sh("find . -name '*.sh' -exec sh {} ;"), files{"b.sh": evilShell}, ""},
		"for run":            {sh("for f in *.sh; do ./$f; done"), files{"b.sh": "#!/bin/sh\n" + evilShell}, ""},
		"alias":              {command("bash", "-c", "shopt -s expand_aliases; source b.sh; ls"), files{"b.sh": "alias ls='rm -rf /'"}, ""},
		"trap source":        {command("bash", "-c", "trap '. ./b.sh' EXIT"), files{"b.sh": evilShell}, ""},
		"coproc":             {command("bash", "-c", "coproc sh b.sh"), files{"b.sh": evilShell}, ""},
		"exec sh":            {sh("exec sh b.sh"), files{"b.sh": evilShell}, ""},
		"exec < file":        {sh("exec < b.sh; sh"), files{"b.sh": evilShell}, ""},
		"var interp":         {sh("S=sh; $S b.sh"), files{"b.sh": evilShell}, ""},
		"abs path":           {sh("/workspace/b.sh"), files{"b.sh": "#!/bin/sh\n" + evilShell}, ""},
		"perl do":            {sh("perl -e 'do \"./b.pl\"'"), files{"b.pl": "system('rm -rf /')"}, ""},
		"perl -M":            {sh("perl -I. -Mb -e 1"), files{"b.pm": "system('rm -rf /')"}, ""},
		"perl stdin":         {sh("perl < b.pl"), files{"b.pl": "system('rm -rf /')"}, ""},
		"ssh config":         {sh("ssh -F cfg host"), files{"cfg": "ProxyCommand rm -rf /"}, ""},
		"crontab":            {sh("crontab b"), files{"b": "* * * * * rm -rf /"}, ""},
		"env -S":             {command("env", "-S", "sh b.sh"), files{"b.sh": evilShell}, ""},
		"sudo":               {sh("sudo sh b.sh"), files{"b.sh": evilShell}, ""},
		"unshare":            {sh("unshare -r sh b.sh"), files{"b.sh": evilShell}, ""},
		"dd | sh":            {sh("dd if=b.sh | sh"), files{"b.sh": evilShell}, ""},
		"tee run":            {sh("tee y.sh < b.txt; sh y.sh"), files{"b.txt": evilShell}, ""},
		"python -m http":     {sh("python3 -m runpy b"), files{"b.py": evilPython}, ""},
		"pytest -p":          {command("pytest", "-p", "b"), files{"b.py": evilPython}, ""},
		"pytest -c":          {command("pytest", "-c", "x.ini"), files{"x.ini": "[pytest]\naddopts=-p b", "b.py": evilPython}, ""},
		"pytest noext":       {command("pytest", "x.txt"), files{"x.txt": ">>> import shutil; shutil.rmtree('/')"}, ""},
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
