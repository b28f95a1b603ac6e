package caisson.rules.privilege_test

import data.caisson.rules.privilege

test_speaks_of_what_it_names if {
	some f in privilege.findings with input as {"actions": {"elevate": [{"at": 0, "op": "elevate", "detail": "sudo", "by": "sudo", "args": []}]}}
	f.id == "SBX-PRIV-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(privilege.findings) == 0 with input as {"actions": {"platform": [{"at": 0, "op": "platform", "detail": "", "by": "x", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(privilege.findings) == 0 with input as {}
}
