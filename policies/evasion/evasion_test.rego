package caisson.rules.evasion_test

import data.caisson.rules.evasion

test_speaks_of_what_it_names if {
	some f in evasion.findings with input as {"dynamic": {"unparsable": [{"at": 0, "detail": "x", "from": []}]}}
	f.id == "SBX-EV-0002"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(evasion.findings) == 0 with input as {"env": {"write": {"plain": [{"at": 0, "name": "FOO"}]}}}
}

test_is_silent_about_nothing if {
	count(evasion.findings) == 0 with input as {}
}

test_modules_that_a_caller_names if {
	module := {"at": 0, "detail": "", "from": ["argv"], "library": false}
	{f.id | some f in evasion.findings} == {"SBX-EV-0005"} with input as {"dynamic": {"dyn_import": [module]}}
	count(evasion.findings) == 0 with input as {"dynamic": {"dyn_import": [object.union(module, {"library": true})]}}
}

ids(doc) := {f.id | some f in evasion.findings with input as doc}

set(class, name, value) := {"env": {"write": {class: [{"at": 0, "line": 1, "op": "write", "name": name, "value": value, "class": class}]}}}

# What only sets a size or a path of the workspace loads nothing.
test_variables_that_load if {
	"SBX-EV-0008" in ids(set("loader", "LD_PRELOAD", "x.so"))
	"SBX-EV-0008" in ids(set("loader", "LD_LIBRARY_PATH", "/tmp/lib"))
	not "SBX-EV-0008" in ids(set("loader", "LD_LIBRARY_PATH", "/workspace/lib"))
	"SBX-EV-0008" in ids(set("startup", "NODE_OPTIONS", "--require ./x.js"))
	not "SBX-EV-0008" in ids(set("startup", "NODE_OPTIONS", "--max-old-space-size=4096"))
	"SBX-EV-0008" in ids(set("search", "PATH", "/bin:/tmp/x"))
	not "SBX-EV-0008" in ids(set("search", "PATH", "/bin:/tmpx"))
}

test_histories if {
	"SBX-EV-0009" in ids(set("history", "HISTFILE", ""))
	"SBX-EV-0009" in ids(set("history", "HISTSIZE", "0"))
	not "SBX-EV-0009" in ids(set("history", "HISTSIZE", "1000"))
	not "SBX-EV-0009" in ids(set("history", "HISTFILE", "~/h"))
}
