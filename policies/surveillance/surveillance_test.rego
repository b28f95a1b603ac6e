package caisson.rules.surveillance_test

import data.caisson.rules.surveillance

test_speaks_of_what_it_names if {
	some f in surveillance.findings with input as {"actions": {"screen": [{"at": 0, "op": "screen", "detail": "", "by": "x", "args": []}]}}
	f.id == "SBX-SUR-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(surveillance.findings) == 0 with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(surveillance.findings) == 0 with input as {}
}
