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
