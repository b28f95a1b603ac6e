# METADATA
# scope: package
# title: Rules about persistence
package caisson.rules.persistence

# METADATA
# title: Plants a program that starts by itself
# custom:
#   id: SBX-PER-0001
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1546.004", "T1053.003", "T1543"]
#   remediation: "A sandbox is gone after its run; start what you need in the run."
#   match:
#     - {"language": "bash", "code": "echo x >> ~/.bashrc"}
#     - {"language": "python", "code": "open('/etc/cron.d/x','w')"}
#   not_match:
#     - {"language": "bash", "code": "echo x >> notes"}
findings contains {"id": "SBX-PER-0001", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in ({"write", "append", "copy_dst", "move_dst", "chmod", "link", "mkdir", "mount"} | {"move_src", "delete"})
	some class in {"persistence"}
	some f in input.files[op][class]
}

# METADATA
# title: Schedules or registers a program
# custom:
#   id: SBX-PER-0002
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1053", "T1543"]
#   remediation: "Run it now."
#   match:
#     - {"language": "bash", "code": "crontab x"}
#     - {"language": "bash", "code": "echo ls | at now"}
#   not_match:
#     - {"language": "bash", "code": "crontab -l"}
findings contains {"id": "SBX-PER-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["persist"]
	some a in input.actions[op]
}

# METADATA
# title: Controls services
# custom:
#   id: SBX-PER-0003
#   severity: high
#   category: persistence
#   cwe: ["CWE-250"]
#   attack: ["T1569"]
#   remediation: "Start programs directly."
#   match:
#     - {"language": "bash", "code": "systemctl enable x"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-PER-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["service"]
	some a in input.actions[op]
}

# METADATA
# title: Adds keys, hosts or sources that are trusted
# custom:
#   id: SBX-PER-0004
#   severity: high
#   category: persistence
#   cwe: ["CWE-506"]
#   attack: ["T1098.004"]
#   remediation: "Use an image that has them."
#   match:
#     - {"language": "bash", "code": "echo key >> ~/.ssh/authorized_keys"}
#   not_match:
#     - {"language": "bash", "code": "echo key >> keys.txt"}
findings contains {"id": "SBX-PER-0004", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["trust"]
	some a in input.actions[op]
}

findings contains {"id": "SBX-PER-0004", "at": f.at, "msg": sprintf("%s is written", [f.path])} if {
	some op in {"write", "append", "copy_dst", "move_dst"}
	some f in input.files[op].credential
}
