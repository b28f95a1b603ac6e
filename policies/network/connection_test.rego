package caisson.rules.network_test

import data.caisson.rules.network

test_unlisted if {
	found := network.findings with input as {"ctx": {"connection": {"host": "a.test", "port": 443, "listed": false}}}
	{[f.id, f.msg] | some f in found} == {["SBX-NET-0010", "a.test:443 is not on the list"]}
}

test_listed if count(network.findings) == 0 with input as {"ctx": {"connection": {"host": "a.test", "port": 443, "listed": true}}}
