package caisson.rules.containers_test

import data.caisson.rules.containers

test_speaks_of_what_it_names if {
	some f in containers.findings with input as {"actions": {"namespace": [{"at": 0, "op": "namespace", "detail": "", "by": "unshare", "args": []}]}}
	f.id == "SBX-CTR-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(containers.findings) == 0 with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(containers.findings) == 0 with input as {}
}
