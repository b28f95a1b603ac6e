# METADATA
# scope: package
# title: Rules about containers
package caisson.rules.containers

# METADATA
# title: Leaves its namespace or root
# custom:
#   id: SBX-CTR-0001
#   severity: high
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1611"]
#   remediation: "Stay in the sandbox."
#   match:
#     - {"language": "bash", "code": "nsenter -t 1 -m sh"}
#     - {"language": "bash", "code": "unshare -r sh"}
#     - {"language": "bash", "code": "mount /dev/sda1 /mnt"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-CTR-0001", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["namespace", "chroot", "mount"]
	some a in input.actions[op]
}

# METADATA
# title: Drives a container engine or cluster
# custom:
#   id: SBX-CTR-0002
#   severity: high
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1610", "T1611"]
#   remediation: "A sandbox has no use for the engine."
#   match:
#     - {"language": "bash", "code": "docker run -v /:/host x"}
#     - {"language": "bash", "code": "kubectl get pods"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-CTR-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["container"]
	some a in input.actions[op]
}
