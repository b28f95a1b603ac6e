# METADATA
# scope: package
# title: Rules about reconnaissance
package caisson.rules.reconnaissance

# METADATA
# title: Lists all users
# custom:
#   id: SBX-REC-0002
#   severity: high
#   category: reconnaissance
#   cwe: ["CWE-200"]
#   attack: ["T1087.001"]
#   remediation: "Do not depend on the machine."
#   match:
#     - {"language": "python", "code": "import pwd\npwd.getpwall()"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.getcwd()"}
findings contains {"id": "SBX-REC-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["users_all"]
	some a in input.actions[op]
	not a.idle
}

# METADATA
# title: Asks which rights it has, or asks a shell about the host
# custom:
#   id: SBX-REC-0004
#   severity: high
#   category: reconnaissance
#   cwe: ["CWE-200"]
#   attack: ["T1033", "T1069.001", "T1057", "T1016", "T1082"]
#   remediation: "Do not depend on the machine, or on who runs the program."
#   match:
#     - {"language": "python", "code": "import os\nos.popen('id').read()"}
#     - {"language": "python", "code": "import os\nos.system('ip addr')"}
#     - {"language": "python", "code": "import os\nprint(os.getgroups())"}
#     - {"language": "javascript", "code": "require('child_process').exec('whoami')"}
#   not_match:
#     - {"language": "bash", "code": "uname -s"}
#     - {"language": "python", "code": "import os\nos.uname()"}
#     - {"language": "python", "code": "import os\ndef f():\n    return os.getlogin()"}
#     - {"language": "python", "code": "import os\nos.system('git status')"}
#     - {"language": "python", "code": "import subprocess\nsubprocess.run(['uname','-m'])"}
findings contains {"id": "SBX-REC-0004", "at": a.at, "msg": sprintf("%s is asked by %s", [a.op, a.by])} if {
	input.meta.lang != "bash"
	some op in ["host_info", "users", "network_info", "processes", "disk_info"]
	some a in input.actions[op]
	a.depth > 0
	not a.idle
	not running(a)
}

# running: whether one program runs, by its name.
running(a) if {
	a.by == "pidof"
	a.line in asking_one
}

asking_one contains c.line if {
	some c in input.commands.pidof
	count(c.operands) == 1
	regex.match(`^[A-Za-z0-9_.+-]+$`, c.operands[0])
	count(c.pipe_to) == 0
}

findings contains {"id": "SBX-REC-0004", "at": a.at, "msg": sprintf("%s by %s", [a.detail, a.by])} if {
	some a in input.actions.rights
	not a.idle
}

# METADATA
# title: Lists connections and open ports
# custom:
#   id: SBX-REC-0005
#   severity: high
#   category: reconnaissance
#   cwe: ["CWE-200"]
#   attack: ["T1049", "T1046"]
#   remediation: "Do not depend on the machine; ask the server that the program itself started."
#   match:
#     - {"language": "bash", "code": "netstat -tulpn"}
#     - {"language": "bash", "code": "lsof -i"}
#     - {"language": "python", "code": "import os\nos.system('ss -an')"}
#     - {"language": "python", "code": "print(open('/proc/net/tcp').read())"}
#     - {"language": "bash", "code": "cat /proc/net/tcp6"}
#   not_match:
#     - {"language": "bash", "code": "ps aux"}
findings contains {"id": "SBX-REC-0005", "at": a.at, "msg": sprintf("connections and open files are listed by %s", [a.by])} if {
	some a in input.actions.connections
	not a.idle
}

findings contains {"id": "SBX-REC-0005", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some f in input.files.read.proc
	not f.idle
	regex.match(`^/proc/([^/]+/)?net/(tcp|udp|raw|unix|packet)`, f.path)
}
