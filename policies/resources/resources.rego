# METADATA
# scope: package
# title: Rules about resources
package caisson.rules.resources

# METADATA
# title: Sends datagrams
# custom:
#   id: SBX-RES-0001
#   severity: high
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1498"]
#   remediation: "Use a connection, in small pieces."
#   match:
#     - {"language": "bash", "code": "echo x | nc -u 127.0.0.1 53"}
#     - {"language": "bash", "code": "echo x > /dev/udp/127.0.0.1/53"}
#   not_match:
#     - {"language": "bash", "code": "echo x"}
findings contains {"id": "SBX-RES-0001", "at": n.at, "msg": sprintf("datagrams go to %s:%d by %s", [n.host, n.port, n.by])} if {
	some class
	class != "allowed"
	some n in input.net[class].send_udp
}

# METADATA
# title: Uses up what the machine has
# custom:
#   id: SBX-RES-0002
#   severity: high
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1499"]
#   remediation: "Bound what the program allocates and starts."
#   match:
#     - {"language": "bash", "code": "stress --cpu 8"}
#     - {"language": "bash", "code": "ping -f 10.0.0.1"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-RES-0002", "at": s.at, "msg": sprintf("%s", [s.detail])} if {
	some kind in ["flood", "resource_burn", "huge_alloc", "loop_write"]
	some s in input.structs[kind]
}

# METADATA
# title: Mines or breaks passwords
# custom:
#   id: SBX-RES-0003
#   severity: critical
#   category: resources
#   cwe: ["CWE-400"]
#   attack: ["T1496", "T1110"]
#   remediation: "Not in a sandbox."
#   match:
#     - {"language": "bash", "code": "xmrig -o x"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-RES-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["mining", "brute_force"]
	some a in input.actions[op]
}
