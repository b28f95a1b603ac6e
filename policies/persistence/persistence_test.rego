package caisson.rules.persistence_test

import data.caisson.rules.persistence

test_speaks_of_what_it_names if {
	some f in persistence.findings with input as {"files": {"append": {"persistence": [{"at": 0, "path": "/etc/crontab", "by": ">>"}]}}}
	f.id == "SBX-PER-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(persistence.findings) == 0 with input as {"files": {"append": {"workspace": [{"at": 0, "path": "/workspace/a", "by": ">>"}]}}}
}

test_is_silent_about_nothing if {
	count(persistence.findings) == 0 with input as {}
}
