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

# A user's rule can only add: the blacklist's finding stays beside a lower one.
test_users_rules_lower_nothing if {
	doc := {"files": {"delete": {"root": [{"at": 0, "line": 1, "op": "delete", "path": "/", "class": "root", "by": "rm", "recursive": true, "traversal": false, "folded": true, "where": ""}]}}}
	ids := {f.id | some f in main.findings with input as doc with data.caisson.user as {"team": {"findings": {{"id": "SBX-BL-0001", "severity": "low", "at": 0, "msg": "fine"}}}}}
	"SBX-BL-0001" in ids
	count({f | some f in main.findings with input as doc with data.caisson.user as {"team": {"findings": {{"id": "SBX-BL-0001", "severity": "low", "at": 0, "msg": "fine"}}}}; f.id == "SBX-BL-0001"}) > 1
}

# An entry of the blacklist holds only where all that it names does.
test_entries_hold_as_a_whole if {
	doc := {"commands": {"shred": [{"at": 0, "line": 1, "name": "shred", "flags": ["u"], "pipe_from": [], "pipe_to": []}]}}
	entry := {"id": "X-1", "commands": {"name": ["shred"], "flags": ["u", "z"]}}
	count(main.findings) == 0 with input as doc with data.blacklist as [entry]
	some f in main.findings with input as doc with data.blacklist as [object.union(entry, {"commands": {"name": ["shred"], "flags": ["u"]}})]
	f.id == "X-1"
}

# A row of lookups.yaml finds what it names, and nothing else.
test_lookups if {
	ids := {f.id | some f in main.findings} with input as {"actions": {"ptrace": [{"at": 0, "op": "ptrace", "detail": "1", "by": "gdb"}]}}
	ids == {"SBX-PRIV-0003"}
}
