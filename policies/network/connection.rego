# What a program that runs wants to connect to, as input.ctx.connection tells it: host,
# port, whether its sandbox's list has them, and the exec.
package caisson.rules.network

# METADATA
# title: Connects to a host that its sandbox's list does not have
# custom:
#   id: SBX-NET-0010
#   severity: high
#   category: network
#   cwe: ["CWE-918"]
#   attack: ["T1071", "T1105"]
#   remediation: "List the host with --allow, or say --unlisted deny to be asked about none."
findings contains {"id": "SBX-NET-0010", "msg": sprintf("%s:%d is not on the list", [c.host, c.port])} if {
	c := input.ctx.connection
	not c.listed
}
