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
