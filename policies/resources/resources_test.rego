package caisson.rules.resources_test

import data.caisson.rules.resources

test_speaks_of_what_it_names if {
	some f in resources.findings with input as {"net": {"loopback": {"send_udp": [{"at": 0, "host": "127.0.0.1", "port": 53, "by": "nc"}]}}}
	f.id == "SBX-RES-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(resources.findings) == 0 with input as {"net": {"allowed": {"send_udp": [{"at": 0, "host": "127.0.0.1", "port": 53, "by": "nc"}]}}}
}

test_is_silent_about_nothing if {
	count(resources.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in resources.findings with input as doc}

keys(length) := {"actions": {"hash": [{"at": 0, "by": "hashlib.md5", "idle": false}], "enumerate": [{"at": 1, "by": "itertools.product", "args": [length]}]}}

# Texts of one or two letters are few.
test_keys_that_are_tried if {
	"SBX-RES-0006" in ids(keys("6"))
	"SBX-RES-0006" in ids(keys(""))
	not "SBX-RES-0006" in ids(keys("2"))
	not "SBX-RES-0006" in ids({"actions": object.remove(keys("6").actions, ["hash"])})
}
