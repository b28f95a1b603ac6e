# METADATA
# scope: package
# title: Rules about evasion
package caisson.rules.evasion

# METADATA
# title: Could not be scanned
# custom:
#   id: SBX-EV-0001
#   severity: high
#   category: evasion
#   cwe: ["CWE-400"]
#   attack: ["T1027"]
#   remediation: "Send a program that a parser can read, of at most 1 MiB."
findings contains {"id": "SBX-EV-0001", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["opaque", "limit", "too_deep"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Is no program of its language
# custom:
#   id: SBX-EV-0002
#   severity: high
#   category: evasion
#   cwe: ["CWE-20"]
#   attack: ["T1027"]
#   remediation: "Send a program that parses."
#   match:
#     - {"language": "bash", "code": "if then fi ("}
#   not_match:
#     - {"language": "bash", "code": "echo hi"}
findings contains {"id": "SBX-EV-0002", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["unparsable"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Hides code in an encoding
# custom:
#   id: SBX-EV-0003
#   severity: high
#   category: evasion
#   cwe: ["CWE-506"]
#   attack: ["T1027", "T1140"]
#   remediation: "Write the code down."
#   match:
#     - {"language": "bash", "code": "echo cm0gLXJmIC8= | base64 -d | sh"}
#   not_match:
#     - {"language": "bash", "code": "echo aGk= | base64 -d"}
findings contains {"id": "SBX-EV-0003", "at": d.at, "msg": sprintf("decoded text is run: %s", [d.detail])} if {
	some kind in ["encoded_payload"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Reaches functions by reflection
# custom:
#   id: SBX-EV-0004
#   severity: high
#   category: evasion
#   cwe: ["CWE-470"]
#   attack: ["T1027"]
#   remediation: "Call functions by their name."
#   match:
#     - {"language": "python", "code": "().__class__.__bases__[0].__subclasses__()"}
#     - {"language": "javascript", "code": "(()=>{}).constructor('return process')()"}
#     - {"language": "javascript", "code": "require.extensions['.js'] = (m, f) => m._compile(x, f)"}
#     - {"language": "python", "code": "import lib\nclass A:\n    def go(self, f):\n        return f('rm -rf /')\ndef g(n):\n    lib.wrap(A).go(n.__globals__[n.name])\ng(lib.x)"}
#   not_match:
#     - {"language": "javascript", "code": "require.extensions['.hbs'] = (m, f) => { m.exports = compile(f) }"}
#     - {"language": "python", "code": "import sys\ndef cmd_add(a, b):\n    return a + b\nname = 'cmd_' + (sys.argv[1] if len(sys.argv) > 1 else 'add')\nprint(globals()[name](1, 2))"}
#     - {"language": "python", "code": "import lib\nclass A:\n    def go(self, f, x):\n        return f(x)\ndef g(n):\n    lib.wrap(A).go(n.__globals__[n.name], 1)"}
#     - {"language": "python", "code": "getattr(x,'name')"}
findings contains {"id": "SBX-EV-0004", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["reflection", "dyn_call"]
	some d in input.dynamic[kind]
	not passed_on(kind, d)
}

passed_on(kind, d) if {
	kind in {"dyn_call", "reflection"}
	d.library
}

# METADATA
# title: Names a module or an attribute that could not be told
# custom:
#   id: SBX-EV-0005
#   severity: high
#   category: evasion
#   cwe: ["CWE-470"]
#   attack: ["T1027"]
#   remediation: "Name what is used."
#   match:
#     - {"language": "python", "code": "import os,sys\ngetattr(os, sys.argv[1])()"}
#     - {"language": "python", "code": "import importlib\nimportlib.import_module(input())"}
#     - {"language": "javascript", "code": "const m = Buffer.from(process.argv[2], 'base64').toString(); require(m)"}
#   not_match:
#     - {"language": "python", "code": "import importlib,sys\nimportlib.import_module(sys.argv[1])"}
#     - {"language": "python", "code": "import importlib,sys\nimportlib.import_module('tasks.' + sys.argv[1]).main()"}
#     - {"language": "javascript", "code": "const m = require(process.argv[2] || './config')\nconsole.log(m)"}
#     - {"language": "python", "code": "import importlib,pkgutil,plugins\nfor m in pkgutil.iter_modules(plugins.__path__):\n    importlib.import_module('plugins.' + m.name)"}
#     - {"language": "python", "code": "import importlib\ndef load(name):\n    return importlib.import_module(name)"}
#     - {"language": "python", "code": "import os\nos.getcwd()"}
findings contains {"id": "SBX-EV-0005", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["dyn_import", "dyn_attr"]
	some d in input.dynamic[kind]
	not d.library
}

# METADATA
# title: Contains characters that hide or disguise text
# custom:
#   id: SBX-EV-0006
#   severity: high
#   category: evasion
#   cwe: ["CWE-1007"]
#   attack: ["T1036"]
#   remediation: "Remove invisible and confusable characters."
findings contains {"id": "SBX-EV-0006", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["invisible"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Writes an encoded program
# custom:
#   id: SBX-EV-0007
#   severity: high
#   category: evasion
#   cwe: ["CWE-506"]
#   attack: ["T1027"]
#   remediation: "Write files as they are."
#   match:
#     - {"language": "python", "code": "import base64\nopen('a.py','wb').write(base64.b64encode(b'import os'))"}
#     - {"language": "bash", "code": "echo TVqQAAMAAAAEAAAA | base64 -d > a.exe"}
#     - {"language": "bash", "code": "base64 -d < a.b64 > a.so"}
#   not_match:
#     - {"language": "python", "code": "open('a.txt','w').write('x')"}
#     - {"language": "bash", "code": "base64 -d < a.b64 > a.bin; gunzip -c /usr/lib/b.exe.gz > b.exe"}
findings contains {"id": "SBX-EV-0007", "at": f.at, "msg": sprintf("encoded text is written to %s", [f.path])} if {
	some op in {"write", "append"}
	some class
	some f in input.files[op][class]
	some from in f.from
	from in {"encoded", "decoded"}
	regex.match(`\.(py|sh|js|pl|rb|php|so|exe|bin|bash)$`, f.path)
	not unpacked(f)
}

# unpacked: data of a file that lies here. Where it is run, that is told.
unpacked(f) if {
	regex.match(`\.(exe|bin)$`, f.path)
	some from in f.from
	startswith(from, "file:")
	every other in f.from {
		unpacks(other)
	}
}

unpacks(from) if from in {"decoded", "filtered", "argv", "env", "argv0", "own_folder"}

unpacks(from) if startswith(from, "file:")

# METADATA
# title: Sets a variable that loads code into programs
# custom:
#   id: SBX-EV-0008
#   severity: high
#   category: evasion
#   cwe: ["CWE-426"]
#   attack: ["T1574.006"]
#   remediation: "Start programs with a plain environment."
#   match:
#     - {"language": "bash", "code": "LD_PRELOAD=/tmp/e.so ls"}
#     - {"language": "bash", "code": "export BASH_ENV=/tmp/x"}
#     - {"language": "bash", "code": "PATH=/tmp:$PATH ls"}
#     - {"language": "bash", "code": "PATH=/tmp/x:$PATH; ls"}
#     - {"language": "bash", "code": "PATH=$(mktemp -d):/tmp/x:$PATH"}
#     - {"language": "bash", "code": "d=$(mktemp -d); PATH=/tmp/x/$d:$PATH"}
#     - {"language": "bash", "code": "LD_LIBRARY_PATH=/tmp/lib ls"}
#     - {"language": "bash", "code": "NODE_OPTIONS='--require ./x.js' npm test"}
#     - {"language": "bash", "code": "export PROMPT_COMMAND=./x"}
#     - {"language": "bash", "code": "PHPRC=/tmp/x php a.php"}
#     - {"language": "bash", "code": "JDK_JAVA_OPTIONS=-javaagent:x.jar java A"}
#     - {"language": "bash", "code": "LESSOPEN='|./x %s' less y"}
#   not_match:
#     - {"language": "bash", "code": "PROMPT_COMMAND=\"${PROMPT_COMMAND:+$PROMPT_COMMAND; }note\""}
#     - {"language": "bash", "code": "export LESSOPEN='|gzip -cdfq -- %s'; exec less \"$@\""}
#     - {"language": "bash", "code": "FOO=1 ls"}
#     - {"language": "bash", "code": "d=$(mktemp -d); export PATH=$d/bin:$PATH"}
#     - {"language": "bash", "code": "LD_FLAGS=\"-s -w\"; go build -ldflags \"$LD_FLAGS\""}
#     - {"language": "bash", "code": "export PATH=$HOME/.local/bin:$PATH"}
#     - {"language": "bash", "code": "export PYTHONPATH=src"}
#     - {"language": "bash", "code": "LD_LIBRARY_PATH=$PWD/lib ./app"}
#     - {"language": "bash", "code": "export NODE_OPTIONS=--max-old-space-size=4096"}
#     - {"language": "bash", "code": "PS4='+ '; set -x"}
#     - {"language": "bash", "code": "export JDK_JAVA_OPTIONS=-Xmx1g"}
findings contains {"id": "SBX-EV-0008", "at": e.at, "msg": sprintf("%s is set", [e.name])} if {
	some e in input.env.write.loader
	not searched(e)
}

# searched: folders of libraries, none of them one that everybody writes to.
searched(e) if {
	e.name in {"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "LD_RUN_PATH"}
	not regex.match(`(^|:)(/tmp|/var/tmp|/dev/shm)(/|:|$)`, e.value)
}

findings contains {"id": "SBX-EV-0008", "at": e.at, "msg": sprintf("%s is set", [e.name])} if {
	some e in input.env.write.startup
	not e.name in {"PYTHONPATH", "NODE_PATH", "ENV", "GIT_PAGER", "GIT_EDITOR", "MANPAGER", "PERL5LIB", "RUBYLIB", "SHELLOPTS", "BASHOPTS", "PYTHONHOME"}
	not plain(e)
}

# plain: options that load nothing and run nothing.
plain(e) if e.value == "/dev/null"

# plain: where git looks for its own programs, as PATH says it of others.
plain(e) if {
	e.name == "GIT_EXEC_PATH"
	not regex.match(`(^|:)(/tmp|/var/tmp|/dev/shm)(/|:|$)`, e.value)
}

plain(e) if {
	e.name in {"NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "RUBYOPT", "PERL5OPT"}
	not e.open
	not regex.match(`(^|\s)(-r\b|--require|--import|--loader|--experimental-loader|--inspect|--eval|-javaagent|-agentlib|-agentpath|-XX:On|-[IMme])`, e.value)
}

plain(e) if {
	e.name == "PS4"
	not e.open
	not regex.match(`\$\(|\x60`, e.value)
}

findings contains {"id": "SBX-EV-0008", "at": e.at, "msg": sprintf("programs are looked for in %s", [e.value])} if {
	some e in input.env.write.search
	regex.match(`(^|:)(/tmp|/var/tmp|/dev/shm)(/|:|$)`, e.value)
	not own_temp(e)
}

# own_temp: the program itself made the folders there, and what it puts into
# them is judged where it is run.
own_temp(e) if "own_temp" in e.from

# METADATA
# title: Covers its tracks
# custom:
#   id: SBX-EV-0009
#   severity: high
#   category: evasion
#   cwe: ["CWE-778"]
#   attack: ["T1070"]
#   remediation: "Leave logs and histories alone."
#   match:
#     - {"language": "bash", "code": "rm ~/.bash_history"}
#     - {"language": "bash", "code": "history -c"}
#     - {"language": "bash", "code": "unset HISTFILE"}
#     - {"language": "bash", "code": "HISTSIZE=0"}
#     - {"language": "bash", "code": "echo > /var/log/auth.log"}
#   not_match:
#     - {"language": "bash", "code": "rm app.log"}
#     - {"language": "bash", "code": "date >> /var/log/app.log; chown app /var/log/app.log"}
#     - {"language": "bash", "code": "HISTSIZE=1000"}
findings contains {"id": "SBX-EV-0009", "at": c.at, "msg": "the shell's history is cleared"} if {
	some c in input.commands.history
	some flag in {"c", "w", "d"}
	flag in c.flags
}

# A history that is not kept: no file, no room, or nothing that is remembered.
findings contains {"id": "SBX-EV-0009", "at": e.at, "msg": sprintf("%s is set so that no history is kept", [e.name])} if {
	some e in input.env.write.history
	keeps_nothing(e.name, e.value)
}

keeps_nothing("HISTFILE", v) if v in {"", "/dev/null"}

keeps_nothing(name, "0") if name in {"HISTSIZE", "HISTFILESIZE"}

keeps_nothing("HISTIGNORE", "*")

findings contains {"id": "SBX-EV-0009", "at": f.at, "msg": sprintf("%s is altered by %s", [f.path, f.by])} if {
	some op in {"write", "delete", "append", "chmod", "link"}
	used := input.files[op]
	some class in {"history", "log"}
	some f in used[class]
	not kept(f)
}

# kept: a log that is begun, written on, or given to its program's user.
kept(f) if {
	f.class == "log"
	f.op == "append"
}

kept(f) if {
	f.class == "log"
	f.by in {"touch", "chgrp", "chown"}
}

# METADATA
# title: Evaluates text in a shell
# custom:
#   id: SBX-EV-0011
#   severity: low
#   category: execution
#   cwe: ["CWE-95"]
#   attack: ["T1059.004"]
#   remediation: "Write the command down."
#   match:
#     - {"language": "bash", "code": "eval \"ls\""}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-EV-0011", "at": d.at, "msg": sprintf("%s", [d.detail])} if {
	some kind in ["shell_eval"]
	some d in input.dynamic[kind]
}

# METADATA
# title: Puts the name of what it uses together
# custom:
#   id: SBX-EV-0012
#   severity: high
#   category: evasion
#   cwe: ["CWE-470"]
#   attack: ["T1027"]
#   remediation: "Call functions by their name."
#   match:
#     - {"language": "python", "code": "import os\ngetattr(os,'sys'+'tem')('ls')"}
#     - {"language": "javascript", "code": "const m=`child_${'process'}`; require(m).exec('x')"}
#   not_match:
#     - {"language": "python", "code": "import os\ngetattr(os,'system')('ls')"}
findings contains {"id": "SBX-EV-0012", "at": d.at, "msg": sprintf("the name %s does not stand in the text", [d.detail])} if {
	some d in input.dynamic.hidden_name
}

# METADATA
# title: Puts the name of a program together
# custom:
#   id: SBX-EV-0013
#   severity: medium
#   category: evasion
#   cwe: ["CWE-78"]
#   attack: ["T1027"]
#   remediation: "Name programs as they are."
#   match:
#     - {"language": "bash", "code": "c''url --version"}
#   not_match:
#     - {"language": "bash", "code": "curl --version"}
findings contains {"id": "SBX-EV-0013", "at": d.at, "msg": sprintf("the name %s does not stand in the text", [d.detail])} if {
	some d in input.dynamic.hidden_command
}
