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
