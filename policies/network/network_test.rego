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

ids(doc) := {f.id | some f in network.findings with input as doc}

asked(class, op, carries) := {"net": {class: {op: [{"at": 0, "line": 1, "op": op, "host": "h", "url": "", "class": class, "by": "curl", "port": 80, "carries": carries}]}}}

# Which hosts are foreign is data; the loopback is home, unless a file goes there.
test_foreign_hosts if {
	"SBX-NET-0001" in ids(asked("public", "request", []))
	not "SBX-NET-0001" in ids(asked("allowed", "request", []))
	not "SBX-NET-0001" in ids(asked("loopback", "request", []))
	"SBX-NET-0009" in ids(asked("loopback", "request", []))
	"SBX-NET-0001" in ids(asked("loopback", "upload", ["file:/workspace/a"]))
	count(network.findings) == 0 with input as asked("public", "request", []) with data.settings.foreign_hosts as []
}

waiting(port) := {"net": {"loopback": {"listen": [{"at": 0, "line": 1, "op": "listen", "host": "127.0.0.1", "url": "", "class": "loopback", "by": "bind", "port": port, "carries": []}]}}}

# Any free port of the loopback is a test's, a port of its own is a service's.
test_ports if {
	"SBX-NET-0002" in ids(waiting(8080))
	not "SBX-NET-0002" in ids(waiting(0))
	"SBX-NET-0008" in ids(waiting(0))
}
