package caisson.main_test

import data.caisson.main

root := {"files": {"delete": {"root": [{"at": 0, "line": 1, "op": "delete", "path": "/", "class": "root", "by": "rm", "recursive": true, "traversal": false}]}}}

test_blacklist_is_part_of_the_findings if {
	some f in main.findings with input as root
	f.id == "SBX-BL-0001"
}

test_users_rules_say_whose_they_are if {
	some f in main.findings with input as {} with data.caisson.user as {"team": {"findings": {{"id": "X", "severity": "low"}}}}
	f.user == "team"
}

test_nothing_is_found_in_nothing if {
	count(main.findings) == 0 with input as {}
}

test_reverse_shell_by_redirection if {
	some f in main.findings with input as {
		"commands": {"bash": [{"at": 0, "line": 1, "name": "bash", "flags": ["i"], "pipe_from": [], "pipe_to": []}]},
		"net": {"private": {"connect": [{"at": 1, "line": 1, "by": ">&", "host": "10.0.0.1", "op": "connect", "class": "private", "url": "", "port": 1, "carries": []}]}},
	}
	f.id == "SBX-BL-0007"
}
