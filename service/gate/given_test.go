package gate_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/manager"
	"github.com/caisson-dev/caisson/sandbox"
)

// given is a run, with what lies in its workspace and on its standard input.
type given struct {
	run   sandbox.Run
	ws    files
	stdin string
}

// verdicts judges runs whose starts are judged as well, or are not.
func verdicts(t *testing.T, starts bool, cases map[string]given, bad func(v sandbox.Verdict) bool) {
	t.Helper()
	p := newPolicy(t)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := question(tt.run, tt.ws, tt.stdin)
			if starts {
				q.JudgesStarts = func(context.Context) (bool, error) { return true, nil }
			}
			a, err := newGate(t, p, &desk{}).Judge(t.Context(), manager.Question{Exec: q})
			if err != nil {
				t.Fatal(err)
			}
			if bad(a.Decision.Verdict) {
				t.Errorf("%s: %s", a.Decision.Verdict, told(a.Decision.Findings))
			}
		})
	}
}

// harmHandedOver is what harms as an argument, a variable, a folder, a name or in a file
// that is sourced, by every way that one text has to hand it to another.
func harmHandedOver() map[string]given {
	const rm = "rm -rf /"
	env := func(r sandbox.Run, e ...string) sandbox.Run { r.Env = e; return r }
	return map[string]given{
		"bash - x.sh":           {command("bash", "-", "x.sh"), files{"x.sh": rm}, ""},
		"sh - x.sh":             {command("sh", "-", "x.sh"), files{"x.sh": rm}, "echo hi"},
		"bash -e - x.sh":        {command("bash", "-e", "-", "x.sh"), files{"x.sh": rm}, ""},
		"bash -es":              {command("bash", "-es"), nil, rm},
		"sh -es rm":             {command("sh", "-es", "rm", "-rf", "/"), nil, `"$@"`},
		"bash -o errexit":       {command("bash", "-o", "errexit"), nil, rm},
		"/tmp/python3":          {command("/tmp/python3", "x.py"), files{"x.py": "print(1)"}, ""},
		"../tmp/bash":           {command("../tmp/bash", "x.sh"), files{"x.sh": "echo"}, ""},
		"/home/sandbox/node":    {command("/home/sandbox/node", "x.js"), files{"x.js": "1"}, ""},
		"/proc/self/cwd/bash":   {command("/proc/self/cwd/bash", "x.sh"), files{"x.sh": "echo", "bash": rm}, ""},
		"/tmp/bash stdin":       {command("/tmp/bash"), nil, "echo"},
		"indirect":              {env(sandbox.Run{Language: "shell", Code: `n=CM; n=${n}D; ${!n}`}, "CMD=rm -rf /"), nil, ""},
		"nameref":               {env(sandbox.Run{Language: "shell", Code: `declare -n r=C"M"D; $r`}, "CMD=rm -rf /"), nil, ""},
		"eval name":             {env(sandbox.Run{Language: "shell", Code: `n=CM""D; eval "\$$n"`}, "CMD=rm -rf /"), nil, ""},
		"eval name2":            {env(sandbox.Run{Language: "shell", Code: `n=CM; eval "\$${n}D"`}, "CMD=rm -rf /"), nil, ""},
		"printenv":              {env(sandbox.Run{Language: "shell", Code: `$(printenv C""MD)`}, "CMD=rm -rf /"), nil, ""},
		"prefix all":            {env(sandbox.Run{Language: "shell", Code: `for v in ${!CM*}; do ${!v}; done`}, "CMD=rm -rf /"), nil, ""},
		"child indirect":        {env(sandbox.Run{Language: "shell", Code: `sh h.sh`}, "CMD=rm -rf /"), files{"h.sh": `n=CM; eval "\$${n}D"`}, ""},
		"export $1":             {sandbox.Run{Language: "shell", Code: "export \"$1\"\nsh h.sh", Args: []string{"CMD=rm -rf /"}}, files{"h.sh": `$CMD`}, ""},
		"export file":           {sandbox.Run{Language: "shell", Code: "export \"$(cat e)\"\nsh h.sh"}, files{"h.sh": `$CMD`, "e": "CMD=rm -rf /"}, ""},
		"set -a":                {sandbox.Run{Language: "shell", Code: "set -a; . ./e; set +a\nsh h.sh"}, files{"h.sh": `$CMD`, "e": "CMD='rm -rf /'"}, ""},
		"eval export file":      {sandbox.Run{Language: "shell", Code: "for l in $(cat e); do export $l; done; sh h.sh"}, files{"h.sh": `$CMD -rf /`, "e": "CMD=rm"}, ""},
		"while read export":     {sandbox.Run{Language: "shell", Code: "while read -r l; do export \"$l\"; done < e; sh h.sh"}, files{"h.sh": `$CMD -rf /`, "e": "CMD=rm"}, ""},
		"py env dict":           {sandbox.Run{Language: "python", Code: "import os,subprocess\nsubprocess.run(['sh','h.sh'], env=dict(os.environ, CMD='rm -rf /'))"}, files{"h.sh": `$CMD`}, ""},
		"py env copy":           {sandbox.Run{Language: "python", Code: "import os,subprocess\ne=os.environ.copy()\ne['CMD']='rm -rf /'\nsubprocess.run(['sh','h.sh'], env=e)"}, files{"h.sh": `$CMD`}, ""},
		"py env update2":        {sandbox.Run{Language: "python", Code: "import os,subprocess,json\nos.environ.update(json.load(open('e')))\nsubprocess.run(['sh','h.sh'])"}, files{"h.sh": `$CMD`, "e": `{"CMD": "rm -rf /"}`}, ""},
		"py |=":                 {sandbox.Run{Language: "python", Code: "import os,subprocess\nos.environ |= {'CMD':'rm -rf /'}\nsubprocess.run(['sh','h.sh'])"}, files{"h.sh": `$CMD`}, ""},
		"py dyn name":           {sandbox.Run{Language: "python", Code: "import os,subprocess\nfor l in open('e'):\n  k,v=l.split('=')\n  os.environ[k]=v\nsubprocess.run(['sh','h.sh'])"}, files{"h.sh": `$CMD`, "e": "CMD=rm -rf /"}, ""},
		"py execve":             {sandbox.Run{Language: "python", Code: "import os\nos.execve('/bin/sh',['sh','h.sh'],{'CMD':'rm -rf /'})"}, files{"h.sh": `$CMD`}, ""},
		"make env":              {env(command("make"), "CMD=rm -rf /"), files{"Makefile": "all:\n\t$(CMD)\n"}, ""},
		"make env sh":           {env(command("make"), "CMD=rm -rf /"), files{"Makefile": "all:\n\t$$CMD\n"}, ""},
		"make parts":            {command("make", "A=rm", "B=-rf", "C=.."), files{"Makefile": "all:\n\t$(A) $(B) $(C)\n"}, ""},
		"make parts assigned":   {command("make", "A=rm", "B=-rf", "C=.."), files{"Makefile": "A=ls\nB=-l\nC=x\nall:\n\t$(A) $(B) $(C)\n"}, ""},
		"make RM":               {env(command("make"), "RM=rm -rf / ;"), files{"Makefile": "all:\n\t$(RM) x\n"}, ""},
		"sh env make":           {command("sh", "-c", "CMD='rm -rf /' make"), files{"Makefile": "all:\n\t$(CMD)\n"}, ""},
		"sh export make":        {command("sh", "-c", "export CMD='rm -rf /'; make"), files{"Makefile": "all:\n\t$(CMD)\n"}, ""},
		"make child env":        {env(command("make"), "CMD=rm -rf /"), files{"Makefile": "all:\n\tsh h.sh\n", "h.sh": `$CMD`}, ""},
		"make export child":     {command("make"), files{"Makefile": "export CMD=rm -rf /\nall:\n\tsh h.sh\n", "h.sh": `$CMD`}, ""},
		"make target env":       {command("make"), files{"Makefile": "all: CMD=rm -rf /\nall:\n\t$(CMD)\n"}, ""},
		"make arg child":        {command("make", "CMD=rm"), files{"Makefile": "all:\n\tsh h.sh\n", "h.sh": `$CMD -rf /`}, ""},
		"npm env":               {env(command("npm", "run", "x"), "CMD=rm -rf /"), files{"package.json": `{"scripts":{"x":"$CMD"}}`}, ""},
		"npm args2":             {command("npm", "run", "x", "--", "-rf", "/"), files{"package.json": `{"scripts":{"x":"rm"}}`}, ""},
		"npm args3":             {command("npm", "run", "x", "/"), files{"package.json": `{"scripts":{"x":"rm -rf"}}`}, ""},
		"npm_config":            {command("npm", "run", "x", "--cmd=rm -rf /"), files{"package.json": `{"scripts":{"x":"$npm_config_cmd"}}`}, ""},
		"npm pkg config":        {command("npm", "run", "x"), files{"package.json": `{"config":{"c":"rm -rf /"},"scripts":{"x":"$npm_package_config_c"}}`}, ""},
		"npm child env":         {env(command("npm", "run", "x"), "CMD=rm -rf /"), files{"package.json": `{"scripts":{"x":"sh h.sh"}}`, "h.sh": "$CMD"}, ""},
		"npm script-shell":      {command("npm", "run", "--script-shell=./h.sh", "x"), files{"package.json": `{"scripts":{"x":"ls"}}`, "h.sh": rm}, ""},
		"npm_config in sh":      {command("sh", "-c", "npm_config_script_shell=./h.sh npm run x"), files{"package.json": `{"scripts":{"x":"ls"}}`, "h.sh": rm}, ""},
		".npmrc":                {command("npm", "run", "x"), files{"package.json": `{"scripts":{"x":"ls"}}`, ".npmrc": "script-shell=./h.sh", "h.sh": rm}, ""},
		"MAKEFLAGS in sh":       {command("sh", "-c", "MAKEFLAGS='--eval=all:;rm${IFS}-rf${IFS}/' make"), files{"Makefile": "all:\n\tls\n"}, ""},
		"hook env":              {command("sh", "-c", "CMD='rm -rf /' git commit -m x"), files{".git/hooks/pre-commit": "#!/bin/sh\n$CMD\n", ".git/config": ""}, ""},
		"hook export":           {command("sh", "-c", "export CMD='rm -rf /'; git commit -m x"), files{".git/hooks/pre-commit": "#!/bin/sh\n$CMD\n", ".git/config": ""}, ""},
		"hook run env":          {env(command("git", "commit"), "CMD=rm -rf /"), files{".git/hooks/pre-commit": "#!/bin/sh\n$CMD\n", ".git/config": ""}, ""},
		"source args":           {sandbox.Run{Language: "shell", Code: ". ./h.sh rm -rf /"}, files{"h.sh": `"$@"`}, ""},
		"source noargs":         {sandbox.Run{Language: "shell", Code: ". ./h.sh", Args: []string{"rm", "-rf", "/"}}, files{"h.sh": `"$@"`}, ""},
		"source after set":      {sandbox.Run{Language: "shell", Code: "set -- rm -rf /; . ./h.sh"}, files{"h.sh": `"$@"`}, ""},
		"source after shift":    {sandbox.Run{Language: "shell", Code: "shift; . ./h.sh", Args: []string{"ls", "rm", "-rf", "/"}}, files{"h.sh": `"$@"`}, ""},
		"source in func":        {sandbox.Run{Language: "shell", Code: "f() { . ./h.sh; }; f rm -rf /"}, files{"h.sh": `"$@"`}, ""},
		"func in source":        {sandbox.Run{Language: "shell", Code: ". ./h.sh; f rm -rf /"}, files{"h.sh": `f() { "$@"; }`}, ""},
		"func in source name":   {sandbox.Run{Language: "shell", Code: ". ./h.sh; go"}, files{"h.sh": `go() { rm -rf "$D"; }`}, ""},
		"func in source sets":   {sandbox.Run{Language: "shell", Code: ". ./h.sh; $CMD"}, files{"h.sh": `CMD='rm -rf /'`}, ""},
		"func in source builds": {sandbox.Run{Language: "shell", Code: "x=rm; . ./h.sh; $x -rf $D"}, files{"h.sh": `D=/`}, ""},
		"source returns":        {sandbox.Run{Language: "shell", Code: "D=build; . ./h.sh; rm -rf $D"}, files{"h.sh": `D=/`}, ""},
		"source returns2":       {sandbox.Run{Language: "shell", Code: ". ./h.sh; rm -rf $D"}, files{"h.sh": `D=/`}, ""},
		"source returns3":       {sandbox.Run{Language: "shell", Code: ". ./h.sh; rm -rf \"${D:?}\""}, files{"h.sh": `D=/`}, ""},
		"source cmd":            {sandbox.Run{Language: "shell", Code: "C=ls; . ./h.sh; $C -rf /"}, files{"h.sh": `C=rm`}, ""},
		"BASH_ARGV2":            {sandbox.Run{Language: "shell", Code: "${BASH_ARGV[0]} -rf /", Args: []string{"rm"}}, nil, ""},
		"h dir":                 {sandbox.Run{Language: "shell", Code: "cd /; sh /workspace/h.sh"}, files{"h.sh": "rm -rf *"}, ""},
		"h dir2":                {sandbox.Run{Language: "shell", Code: "(cd / && sh /workspace/h.sh)"}, files{"h.sh": "rm -rf usr"}, ""},
		"h dir arg":             {sandbox.Run{Language: "shell", Code: "cd \"$1\"; sh /workspace/h.sh", Args: []string{"/"}}, files{"h.sh": "rm -rf usr"}, ""},
		"h py dir":              {sandbox.Run{Language: "shell", Code: "cd /; python3 /workspace/h.py"}, files{"h.py": "import shutil\nshutil.rmtree('usr')"}, ""},
		"node dyn":              {sandbox.Run{Language: "node", Code: "process.env['C'+process.argv.length.toString().slice(9)+'MD']='rm -rf /';require('child_process').spawnSync('sh',['h.sh'])"}, files{"h.sh": `$CMD`}, ""},
		"py run argv list":      {sandbox.Run{Language: "python", Code: "import subprocess,sys\nsubprocess.run(sys.argv[1:])", Args: []string{"rm", "-rf", "/"}}, nil, ""},
		"py execvp":             {sandbox.Run{Language: "python", Code: "import os,sys\nos.execvp(sys.argv[1], sys.argv[1:])", Args: []string{"rm", "-rf", "/"}}, nil, ""},
		"py rmtree":             {sandbox.Run{Language: "python", Code: "import shutil,sys\nshutil.rmtree(sys.argv[1])", Args: []string{"/"}}, nil, ""},
		"py rmtree file":        {sandbox.Run{Language: "python", File: "x.py", Args: []string{"/"}}, files{"x.py": "import shutil,sys\nshutil.rmtree(sys.argv[1])"}, ""},
		"py argparse":           {sandbox.Run{Language: "python", Code: "import argparse,shutil\np=argparse.ArgumentParser()\np.add_argument('d')\na=p.parse_args()\nshutil.rmtree(a.d)", Args: []string{"/"}}, nil, ""},
		"py argparse cmd":       {sandbox.Run{Language: "python", Code: "import argparse,subprocess\np=argparse.ArgumentParser()\np.add_argument('--cmd')\na=p.parse_args()\nsubprocess.run(a.cmd, shell=True)", Args: []string{"--cmd", "rm -rf /"}}, nil, ""},
		"py environ":            {env(sandbox.Run{Language: "python", Code: "import os\nos.system(os.environ['CMD'])"}, "CMD=rm -rf /"), nil, ""},
		"py environ rmtree":     {env(sandbox.Run{Language: "python", Code: "import os,shutil\nshutil.rmtree(os.environ['D'])"}, "D=/"), nil, ""},
		"py getenv list":        {env(sandbox.Run{Language: "python", Code: "import os,subprocess\nsubprocess.run([os.getenv('A'),'-rf','/'])"}, "A=rm"), nil, ""},
		"py click rmtree":       {sandbox.Run{Language: "python", Code: "import click,shutil\n@click.command()\n@click.argument('d')\ndef run(d):\n  shutil.rmtree(d)\nrun()", Args: []string{"/"}}, nil, ""},
		"py open w":             {sandbox.Run{Language: "python", Code: "import sys\nopen(sys.argv[1],'w').write('x')", Args: []string{"/dev/sda"}}, nil, ""},
		"py url":                {sandbox.Run{Language: "python", Code: "import sys,urllib.request\nurllib.request.urlopen(sys.argv[1])", Args: []string{"http://169.254.169.254/"}}, nil, ""},
		"node argv file":        {sandbox.Run{Language: "node", File: "x.js", Args: []string{"rm -rf /"}}, files{"x.js": "require('child_process').execSync(process.argv[2])"}, ""},
		"node rmSync":           {sandbox.Run{Language: "node", File: "x.js", Args: []string{"/"}}, files{"x.js": "require('fs').rmSync(process.argv[2],{recursive:true,force:true})"}, ""},
		"node env rm":           {env(sandbox.Run{Language: "node", Code: "require('fs').rmSync(process.env.D,{recursive:true})"}, "D=/"), nil, ""},
		"node spawn args":       {sandbox.Run{Language: "node", File: "x.js", Args: []string{"rm", "-rf", "/"}}, files{"x.js": "const [c,...a]=process.argv.slice(2);require('child_process').spawnSync(c,a)"}, ""},
		"sh > py env":           {sandbox.Run{Language: "shell", Code: "X='rm -rf /' python3 h.py"}, files{"h.py": "import os\nos.system(os.environ['X'])"}, ""},
		"py > py argv":          {sandbox.Run{Language: "python", Code: "import subprocess\nsubprocess.run(['python3','h.py','/'])"}, files{"h.py": "import shutil,sys\nshutil.rmtree(sys.argv[1])"}, ""},
		"multiprocessing":       {sandbox.Run{Language: "python", Code: "import multiprocessing,os,sys\nmultiprocessing.Process(target=os.system,args=(sys.argv[1],)).start()", Args: []string{rm}}, nil, ""},
		"pool map":              {sandbox.Run{Language: "python", Code: "import multiprocessing,os,sys\nmultiprocessing.Pool().map(os.system,sys.argv[1:])", Args: []string{rm}}, nil, ""},
	}
}

// Where what a text starts is not judged later, none of it passes.
func TestHarmThatIsHandedOver(t *testing.T) {
	t.Parallel()
	verdicts(t, false, harmHandedOver(), func(v sandbox.Verdict) bool { return v == sandbox.Allow })
}

// The same ways, for what people do every day.
func TestEverydayHandingOver(t *testing.T) {
	t.Parallel()
	shell := func(text string, args ...string) sandbox.Run {
		return sandbox.Run{Language: "shell", Code: text, Args: args}
	}
	python := func(text string, args ...string) sandbox.Run {
		return sandbox.Run{Language: "python", Code: text, Args: args}
	}
	verdicts(t, true, map[string]given{
		"a library":             {shell(". ./lib.sh\nlog hello\nbuild \"$@\"", "-O2"), files{"lib.sh": "log() { echo \"[$(date)] $*\"; }\nbuild() { mkdir -p out; gcc \"$@\" -o out/a a.c; }"}, ""},
		"one if it is there":    {shell("[ -f ./lib.sh ] && . ./lib.sh\nls"), files{"lib.sh": "X=1"}, ""},
		"by its own place":      {sandbox.Run{Language: "shell", File: "bin/x.sh"}, files{"bin/x.sh": "set -eu\nhere=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\n. \"$here/lib.sh\"\nrun ls -l", "bin/lib.sh": "run() { echo \"+ $*\"; \"$@\"; }"}, ""},
		"settings":              {shell("set -a; . ./settings; set +a\nsh build.sh"), files{"settings": "CC=gcc\nOUT=out", "build.sh": "$CC -c x.c -o $OUT/x.o"}, ""},
		"a folder first":        {shell("cd sub\nsh ../build.sh\npython3 ../tool.py"), files{"build.sh": "rm -rf build; mkdir build", "tool.py": "import shutil\nshutil.rmtree('build', ignore_errors=True)", "sub/x": ""}, ""},
		"a Makefile":            {command("make", "CC=clang", "V=1"), files{"Makefile": "CC ?= gcc\nCFLAGS = -O2\nCFLAGS += -Wall\nexport OUT = out\nall: x\nx: x.c\n\t@echo building $@\n\t$(CC) $(CFLAGS) -o $@ x.c\nclean:\n\trm -f x *.o\n\trm -rf $(OUT)\n.PHONY: all clean\ndebug: CFLAGS=-g\ndebug: all\n"}, ""},
		"make with jobs":        {command("sh", "-c", "MAKEFLAGS=\"-j$(nproc)\" make all"), files{"Makefile": "all:\n\tgcc x.c\n"}, ""},
		"a variable of make's":  {sandbox.Run{Language: "shell", Command: []string{"make"}, Env: []string{"PREFIX=out"}}, files{"Makefile": "PREFIX ?= dist\nall:\n\tmkdir -p $(PREFIX)\n"}, ""},
		"npm":                   {command("npm", "test", "--", "--watch=false"), files{"package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"node --version"}}`}, ""},
		"a hook":                {command("git", "commit", "-m", "x"), files{".git/hooks/pre-commit": "#!/bin/sh\necho checking\nls \"$GIT_DIR\"\n", ".git/config": ""}, ""},
		"python's children":     {python("import os, subprocess\nsubprocess.run(['sh', 'build.sh'], env={**os.environ, 'OUT': 'out'}, check=True)"), files{"build.sh": "mkdir -p \"$OUT\"; ls \"$OUT\""}, ""},
		"bash's flags":          {command("bash", "-eu", "-o", "pipefail", "x.sh", "a"), files{"x.sh": "echo \"$1\""}, ""},
		"a tool's arguments":    {python("import argparse, json, pathlib\np = argparse.ArgumentParser()\np.add_argument('files', nargs='*')\np.add_argument('--out', default='out.json')\na = p.parse_args()\npathlib.Path(a.out).write_text(json.dumps([pathlib.Path(f).read_text() for f in a.files]))", "a.txt", "b.txt", "--out", "x.json"), nil, ""},
		"a folder to clean":     {python("import shutil, sys\nshutil.rmtree(sys.argv[1], ignore_errors=True)", "build/tmp"), nil, ""},
		"a setting of python's": {sandbox.Run{Language: "python", Code: "import os\nprint(os.environ.get('LEVEL', 'info'), os.environ['OUT'])", Env: []string{"LEVEL=debug", "OUT=out"}}, nil, ""},
		"a tool of node's":      {sandbox.Run{Language: "node", File: "x.js", Args: []string{"in.txt", "out.txt"}}, files{"x.js": "const fs=require('fs');const [a,b]=process.argv.slice(2);fs.writeFileSync(b,fs.readFileSync(a,'utf8').toUpperCase())"}, ""},
		"a program's input":     {command("bash", "-es"), nil, "echo hi\n"},
		"an interpreter":        {command("/usr/bin/python3", "x.py"), files{"x.py": "print(1)"}, ""},
		"options":               {shell("while [ $# -gt 0 ]; do case $1 in -o) out=$2; shift;; esac; shift; done\nmkdir -p \"${out:-out}\"", "-o", "build"), nil, ""},
	}, func(v sandbox.Verdict) bool { return v != sandbox.Allow })
}
