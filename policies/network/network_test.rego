package caisson.rules.network_test

import data.caisson.rules.network

test_speaks_of_what_it_names if {
	some f in network.findings with input as {"net": {"public": {"request": [{"at": 0, "op": "request", "host": "x.test", "url": "", "class": "public", "by": "curl", "port": 80}]}}}
	f.id == "SBX-NET-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(network.findings) == 0 with input as {"net": {"allowed": {"request": [{"at": 0, "op": "request", "host": "x.test", "url": "", "class": "allowed", "by": "curl", "port": 80}]}}}
}

test_is_silent_about_nothing if {
	count(network.findings) == 0 with input as {}
}
