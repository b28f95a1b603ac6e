package caisson.rules.credentials_test

import data.caisson.rules.credentials

test_speaks_of_what_it_names if {
	some f in credentials.findings with input as {"files": {"read": {"credential": [{"at": 0, "path": "/etc/shadow", "by": "cat"}]}}}
	f.id == "SBX-CRED-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(credentials.findings) == 0 with input as {"files": {"read": {"workspace": [{"at": 0, "path": "/workspace/a", "by": "cat"}]}}}
}

test_is_silent_about_nothing if {
	count(credentials.findings) == 0 with input as {}
}
