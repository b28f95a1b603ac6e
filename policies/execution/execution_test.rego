package caisson.rules.execution_test

import data.caisson.rules.execution

test_speaks_of_what_it_names if {
	some f in execution.findings with input as {"dynamic": {"opaque_code": [{"at": 0, "detail": "x", "from": []}]}}
	f.id == "SBX-EXEC-0002"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(execution.findings) == 0 with input as {"dynamic": {"shell_eval": [{"at": 0, "detail": "ls", "from": []}]}}
}

test_is_silent_about_nothing if {
	count(execution.findings) == 0 with input as {}
}

test_code_that_a_caller_hands_over_is_medium if {
	code := {"at": 0, "detail": "exec(x)", "from": ["param"], "library": false, "inert": false}
	{f.id | some f in execution.findings} == {"SBX-EXEC-0002"} with input as {"dynamic": {"opaque_code": [code]}}
	{f.id | some f in execution.findings} == {"SBX-EXEC-0014"} with input as {"dynamic": {"opaque_code": [object.union(code, {"library": true})]}}
}

test_code_of_another_system_is_medium if {
	{f.id | some f in execution.findings} == {"SBX-EXEC-0014"} with input as {"actions": {"windows_code": [{"at": 0, "by": "ctypes.WinDLL"}]}}
}

ids(doc) := {f.id | some f in execution.findings with input as doc}

dynamic(kind, extra) := {"dynamic": {kind: [object.union({"at": 0, "line": 1, "kind": kind, "detail": "x", "from": [], "library": false, "inert": false}, extra)]}}

# What a caller hands over is noted, what the program hides is asked about.
test_given_or_hidden if {
	"SBX-EXEC-0002" in ids(dynamic("opaque_code", {}))
	not "SBX-EXEC-0002" in ids(dynamic("opaque_code", {"library": true}))
	"SBX-EXEC-0014" in ids(dynamic("opaque_code", {"library": true}))
	"SBX-EXEC-0001" in ids(dynamic("eval", {}))
	not "SBX-EXEC-0001" in ids(dynamic("eval", {"inert": true}))
	"SBX-EXEC-0015" in ids(dynamic("eval", {"inert": true}))
	"SBX-EXEC-0003" in ids(dynamic("opaque_command", {}))
	not "SBX-EXEC-0003" in ids(dynamic("opaque_command", {"library": true}))
}

made(values, argv) := {"commands": {"make": [{"at": 0, "line": 1, "values": values, "argv": argv}]}}

test_rules_for_make if {
	"SBX-EXEC-0016" in ids(made({"-f": "-"}, ["make"]))
	"SBX-EXEC-0016" in ids(made({"-f": "/dev/fd/63"}, ["make"]))
	not "SBX-EXEC-0016" in ids(made({"-f": "build.mk"}, ["make"]))
	"SBX-EXEC-0016" in ids(made({"-E": "x := $(shell id)"}, ["make"]))
	not "SBX-EXEC-0016" in ids(made({"-E": "x := 1"}, ["make"]))
	"SBX-EXEC-0016" in ids(made({}, ["make", "SHELL=./sh"]))
	not "SBX-EXEC-0016" in ids(made({}, ["make", "SHELL=/usr/bin/bash"]))
}

warn(w) := {"commands": {"python3": [{"at": 0, "line": 1, "values": {"-W": w}}]}}

# The third part of a filter is a class; one with a dot is a module's.
test_classes_of_warnings if {
	"SBX-EXEC-0017" in ids(warn("error::a.B"))
	not "SBX-EXEC-0017" in ids(warn("error::UserWarning"))
	not "SBX-EXEC-0017" in ids(warn("error:::a.b:0"))
	not "SBX-EXEC-0017" in ids(warn("error"))
}

searched(class, path) := {"files": {"search": {class: [{"at": 0, "line": 1, "path": path, "class": class, "by": "sys.path.insert"}]}}}

# A folder that everybody writes to, unless the program made it.
test_where_modules_are_looked_for if {
	"SBX-EXEC-0018" in ids(searched("tmp", "/tmp/x"))
	not "SBX-EXEC-0018" in ids(searched("workspace", "/workspace/src"))
	own := {"files": {"search": {"tmp": [{"at": 0, "path": "/tmp/x", "class": "tmp"}]}, "write": {"tmp": [{"at": 1, "path": "/tmp/x/m.py", "class": "tmp"}]}}}
	not "SBX-EXEC-0018" in ids(own)
}
