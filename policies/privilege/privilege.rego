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
#     - {"language": "bash", "code": "sudo -i"}
#     - {"language": "bash", "code": "sudo su -"}
#     - {"language": "bash", "code": "sudo bash"}
#     - {"language": "bash", "code": "su - postgres"}
#     - {"language": "bash", "code": "sudo sh -c \"$(cat x)\""}
#     - {"language": "bash", "code": "read -r x; sudo \"$x\""}
#     - {"language": "python", "code": "import os\nos.setuid(0)"}
#     - {"language": "bash", "code": "useradd x"}
#     - {"language": "python", "code": "import os\ndef root():\n    os.setuid(0)"}
#     - {"language": "python", "code": "import os, pwd\nos.setuid(pwd.getpwnam('root').pw_uid)"}
#     - {"language": "python", "code": "import os, pwd, sys\nos.setuid(pwd.getpwnam(sys.argv[1]).pw_uid)"}
#     - {"language": "python", "code": "import os\nos.setreuid(1000, 0)"}
#     - {"language": "python", "code": "import grp, os\nos.setgid(grp.getgrnam('docker').gr_gid)"}
#   not_match:
#     - {"language": "python", "code": "import os, pwd\nu = pwd.getpwnam('nobody')\nos.setgroups([])\nos.setgid(u.pw_gid)\nos.setuid(u.pw_uid)"}
#     - {"language": "python", "code": "import os\ndef drop(uid):\n    os.setuid(uid)"}
#     - {"language": "bash", "code": "ls"}
#     - {"language": "bash", "code": "sudo apt-get install -y make"}
findings contains {"id": "SBX-PRIV-0001", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["elevate", "setuid", "accounts"]
	some a in input.actions[op]
	not told(a)
	not bounded(a)
	not lesser(a)
}

# lesser: a user who certainly has no more rights.
lesser(a) if {
	a.op == "setuid"
	"lesser" in a.from
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

findings contains {"id": "SBX-PRIV-0004", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some a in input.actions.setuid
	lesser(a)
}

# bounded: what is to run with the rights is named, is judged for what it does, and
# takes no commands of its own.
bounded(a) if {
	a.op == "elevate"
	a.by in {"sudo", "doas"}
	a.detail == a.by
	words := [w | some i, w in a.args; i > 0; not contains(w, "=")]
	parts := split(words[0], "/")
	name := parts[count(parts) - 1]
	name != ""
	not name in data.settings.unbounded_programs
}

# bounded: what is to run is the caller's to say.
bounded(a) if {
	a.op == "elevate"
	a.by in {"sudo", "doas"}
	a.detail == a.by
	count(a.args) > 1
	a.args[1] == ""
	count(a.from) > 0
	every from in a.from {
		regex.match(`^(argv0?|param|env:.*)$`, from)
	}
}

# bounded: a shell that is given its commands, which are judged for themselves.
bounded(a) if {
	a.op == "elevate"
	a.by in {"sudo", "doas"}
	a.detail == a.by
	words := [w | some i, w in a.args; i > 0; not regex.match(`^[A-Za-z_]+=`, w)]
	words[0] in {"sh", "bash", "dash", "/bin/sh", "/bin/bash"}
	regex.match(`^-[a-z]*c$`, words[1])
	said(words[2], a)
}

said(word, _) if word != ""

said("", a) if {
	count(a.from) > 0
	every from in a.from {
		regex.match(`^(argv0?|param|env:.*)$`, from)
	}
}

bounded(a) if {
	a.op == "elevate"
	a.detail == "su -c"
	said(a.args[0], a)
}

# bounded: who starts these has all rights already, and gives some up.
bounded(a) if {
	a.op == "elevate"
	a.by in {"gosu", "setpriv"}
}

# METADATA
# title: Runs a program with another user's rights
# custom:
#   id: SBX-PRIV-0005
#   severity: medium
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1548.003"]
#   remediation: "Run as the sandbox's user, who cannot get other rights."
#   match:
#     - {"language": "bash", "code": "sudo apt-get install -y make"}
#     - {"language": "bash", "code": "sudo -E make install"}
#     - {"language": "bash", "code": "exec gosu app \"$@\""}
#     - {"language": "bash", "code": "sudo sh -c 'make install'"}
#     - {"language": "bash", "code": "su -c 'make install'"}
#   not_match:
#     - {"language": "bash", "code": "make install"}
#     - {"language": "bash", "code": "sudo -i"}
findings contains {"id": "SBX-PRIV-0005", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.by, a.detail])])} if {
	some a in input.actions.elevate
	bounded(a)
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
