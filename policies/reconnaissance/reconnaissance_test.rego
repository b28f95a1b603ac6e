package caisson.rules.reconnaissance_test

import data.caisson.rules.reconnaissance

test_speaks_of_what_it_names if {
	some f in reconnaissance.findings with input as {"actions": {"users_all": [{"at": 0, "op": "users_all", "detail": "", "by": "x", "args": []}]}}
	f.id == "SBX-REC-0002"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(reconnaissance.findings) == 0 with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(reconnaissance.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in reconnaissance.findings with input as doc}

asked(lang, depth, idle) := {"meta": {"lang": lang}, "actions": {"host_info": [{"at": 0, "line": 1, "op": "host_info", "detail": "id", "by": "id", "args": [], "depth": depth, "idle": idle}], "users_all": [{"at": 1, "line": 1, "op": "users_all", "detail": "x", "by": "y", "args": [], "depth": depth, "idle": idle}]}}

# A shell asks about its host as a matter of course; another language that
# starts one for it is asked about.
test_who_asks if {
	"SBX-REC-0004" in ids(asked("python", 1, false))
	not "SBX-REC-0004" in ids(asked("python", 0, false))
	not "SBX-REC-0004" in ids(asked("bash", 1, false))
	"SBX-REC-0002" in ids(asked("bash", 0, false))
	not "SBX-REC-0002" in ids(asked("bash", 0, true))
}
