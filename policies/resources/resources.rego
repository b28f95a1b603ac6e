# METADATA
# scope: package
# title: Rules about resources
package caisson.rules.resources

# METADATA
# title: Sends datagrams
# custom:
#   id: SBX-RES-0001
#   severity: high
#   category: network
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
# title: Tries out keys
# custom:
#   id: SBX-RES-0006
#   severity: high
#   category: resources
#   cwe: ["CWE-307"]
#   attack: ["T1110.002"]
#   remediation: "Do not break passwords in a sandbox."
#   match:
#     - {"language": "python", "code": "import hashlib, itertools, string\nfor p in itertools.product(string.ascii_lowercase, repeat=6):\n    if hashlib.md5(''.join(p).encode()).hexdigest() == 'abc':\n        print(p)"}
#   not_match:
#     - {"language": "python", "code": "import itertools\nprint(list(itertools.product('ab', repeat=2)))"}
#     - {"language": "python", "code": "import hashlib\nprint(hashlib.md5(b'x').hexdigest())"}
findings contains {"id": "SBX-RES-0006", "at": a.at, "msg": sprintf("all texts of a length are hashed by %s", [a.by])} if {
	some a in input.actions.hash
	not a.idle
	all_texts
}

all_texts if {
	some e in input.actions.enumerate
	not few(e)
}

# few: all texts of one or two letters.
few(e) if {
	some n in e.args
	n in {"1", "2"}
}
