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
