package caisson.rules.processes_test

import data.caisson.rules.processes

test_speaks_of_what_it_names if {
	some f in processes.findings with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": ["1"]}]}}
	f.id == "SBX-PROC-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(processes.findings) == 0 with input as {"actions": {"fork": [{"at": 0, "op": "fork", "detail": "multiprocessing", "by": "x", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(processes.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in processes.findings with input as doc}

kill(extra) := {"actions": {"kill": [object.union({"at": 0, "line": 1, "op": "kill", "by": "kill", "detail": "", "args": [], "from": [], "idle": false}, extra)]}}

# What the program started is its own: by a job, by a number it was told.
test_whose_process if {
	"SBX-PROC-0001" in ids(kill({"args": ["1"]}))
	not "SBX-PROC-0001" in ids(kill({"args": ["%1"]}))
	"SBX-PROC-0001" in ids(kill({"args": ["%1", "1"]}))
	not "SBX-PROC-0001" in ids(kill({"from": ["own_process"]}))
	"SBX-PROC-0001" in ids(kill({"from": ["own_process"], "args": ["1"]}))
	"SBX-PROC-0001" in ids(kill({"from": ["file:/run/x.pid"]}))
	not "SBX-PROC-0001" in ids(kill({"from": ["file:/workspace/x.pid"]}))
}
