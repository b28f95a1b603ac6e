# METADATA
# scope: package
# title: Rules about privilege
package caisson.rules.privilege

# METADATA
# title: Asks for another user's rights
# custom:
#   id: SBX-PRIV-0001
#   severity: high
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1548.003", "T1136"]
#   remediation: "Run as the sandbox's user."
#   match:
#     - {"language": "bash", "code": "sudo ls"}
#     - {"language": "python", "code": "import os\nos.setuid(0)"}
#     - {"language": "bash", "code": "useradd x"}
#     - {"language": "python", "code": "import os\ndef root():\n    os.setuid(0)"}
#   not_match:
#     - {"language": "python", "code": "import os\ndef drop(uid):\n    os.setuid(uid)"}
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-PRIV-0001", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["elevate", "setuid", "accounts"]
	some a in input.actions[op]
	not told(a)
}

# told: a function that nothing calls does it to whom, or makes what, its caller
# says.
told(a) if {
	a.op in {"setuid", "device_node"}
	a.idle
	a.args == [""]
}

# METADATA
# title: Would change its user, or make a node, in a function that nothing calls
# custom:
#   id: SBX-PRIV-0004
#   severity: medium
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1548"]
#   remediation: "Run as the sandbox's user."
#   match:
#     - {"language": "python", "code": "import os\ndef drop(uid):\n    os.setuid(uid)"}
#     - {"language": "python", "code": "import os\ndef make(path, mode):\n    os.mknod(path, mode)"}
#   not_match:
#     - {"language": "python", "code": "import os\ndef root():\n    os.setuid(0)"}
findings contains {"id": "SBX-PRIV-0004", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["setuid", "device_node"]
	some a in input.actions[op]
	told(a)
}

# METADATA
# title: Changes the machine
# custom:
#   id: SBX-PRIV-0002
#   severity: high
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1529", "T1562.004"]
#   remediation: "Leave the machine alone."
#   match:
#     - {"language": "bash", "code": "shutdown now"}
#     - {"language": "bash", "code": "iptables -F"}
#     - {"language": "bash", "code": "mknod x b 8 0"}
#   not_match:
#     - {"language": "bash", "code": "date"}
findings contains {"id": "SBX-PRIV-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["reboot", "clock", "kernel_parameter", "host_change", "firewall", "attributes", "device_node", "raw_disk"]
	some a in input.actions[op]
	not told(a)
}

# METADATA
# title: Traces another process
# custom:
#   id: SBX-PRIV-0003
#   severity: high
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1055.008"]
#   remediation: "Debug your own program."
#   match:
#     - {"language": "bash", "code": "strace -p 1"}
#     - {"language": "bash", "code": "gdb -p 1"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-PRIV-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["ptrace", "trace"]
	some a in input.actions[op]
}
