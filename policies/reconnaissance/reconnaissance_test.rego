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
