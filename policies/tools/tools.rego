# METADATA
# scope: package
# title: Rules about calls of the host's tools
# description: >-
#   What a program gives a tool, before it runs: input.ctx.tool has the tool's name, the
#   arguments, and what was decided about the program.
package caisson.rules.tools

# METADATA
# title: Calls a tool that is to be asked about
# custom:
#   id: SBX-TOOL-0001
#   severity: high
#   category: tools
#   cwe: ["CWE-862"]
#   remediation: "Approve the call, or declare the tool with verdict allow."
findings contains {"id": "SBX-TOOL-0001", "msg": sprintf("it calls %s, which is declared with verdict ask", [input.ctx.tool.name])} if {
	input.ctx.tool.declared == "ask"
}

# METADATA
# title: Calls a tool that is denied
# custom:
#   id: SBX-TOOL-0002
#   severity: high
#   deny: true
#   category: tools
#   cwe: ["CWE-862"]
#   remediation: "Do without the tool, or declare it with verdict ask or allow."
findings contains {"id": "SBX-TOOL-0002", "msg": sprintf("it calls %s, which is declared with verdict deny", [input.ctx.tool.name])} if {
	input.ctx.tool.declared == "deny"
}
