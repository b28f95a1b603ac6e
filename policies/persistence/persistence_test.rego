package caisson.rules.persistence_test

import data.caisson.rules.persistence

test_speaks_of_what_it_names if {
	some f in persistence.findings with input as {"files": {"append": {"persistence": [{"at": 0, "path": "/etc/crontab", "by": ">>"}]}}}
	f.id == "SBX-PER-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(persistence.findings) == 0 with input as {"files": {"append": {"workspace": [{"at": 0, "path": "/workspace/a", "by": ">>"}]}}}
}

test_is_silent_about_nothing if {
	count(persistence.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in persistence.findings with input as doc}

alias(text) := {"actions": {"alias": [{"at": 0, "line": 1, "detail": text, "by": "alias", "op": "alias", "args": []}]}}

# A common name that means another program; the program itself, or one that
# many put in its place, does not count.
test_names_of_programs if {
	"SBX-PER-0005" in ids(alias("ls=rm -rf"))
	not "SBX-PER-0005" in ids(alias("ls=ls --color"))
	not "SBX-PER-0005" in ids(alias("ls=eza -l"))
	not "SBX-PER-0005" in ids(alias("myls=rm -rf"))
	not "SBX-PER-0005" in ids(alias("grep=ggrep"))
}

hook(op) := {"files": {op: {"git_hook": [{"at": 0, "line": 1, "path": "/workspace/.git/hooks/pre-commit", "by": ">"}]}}}

test_hooks if {
	"SBX-PER-0007" in ids(hook("write"))
	"SBX-PER-0007" in ids(hook("link"))
	not "SBX-PER-0007" in ids(hook("read"))
	not "SBX-PER-0007" in ids(hook("chmod"))
}

made(path) := {
	"files": {"write": {"git_hook": [{"at": 0, "line": 1, "path": path, "by": ">"}]}},
	"commands": {"git": [{"at": 1, "line": 1, "operands": ["init"], "argv": ["git", "init"], "flags": []}]},
}

# The workspace may have been a repository before the program made it one.
test_hooks_of_a_new_repository if {
	"SBX-PER-0007" in ids(made("/workspace/.git/hooks/pre-commit"))
	not "SBX-PER-0007" in ids(made("/workspace/t/.git/hooks/pre-commit"))
}

git(argv, flags) := {"commands": {"git": [{"at": 0, "line": 1, "argv": argv, "operands": ["config"], "flags": flags}]}}

test_settings_of_git if {
	"SBX-PER-0006" in ids(git(["git", "config", "core.sshCommand", "x"], []))
	"SBX-PER-0006" in ids(git(["git", "config", "--global", "core.hooksPath", "/tmp/h"], ["global"]))
	not "SBX-PER-0006" in ids(git(["git", "config", "core.hooksPath", ".githooks"], []))
	not "SBX-PER-0006" in ids(git(["git", "config", "--global", "alias.st", "status"], ["global"]))
	"SBX-PER-0006" in ids(git(["git", "config", "--global", "alias.st", "!sh"], ["global"]))
}
