# METADATA
# scope: package
# title: Rules about what surrounds a program
# description: What a run brings along beside its text, as the gate tells it in input.ctx.gate.
package caisson.rules.gate

# METADATA
# title: Runs code that could not be judged
# custom:
#   id: SBX-GATE-0001
#   severity: high
#   category: evasion
#   cwe: ["CWE-829"]
#   attack: ["T1027"]
#   remediation: "Bring it as a text file of python, node or shell in the workspace, named where it is loaded."
findings contains {"id": "SBX-GATE-0001", "msg": sprintf("%s: %s", [u.name, u.why])} if {
	some u in input.ctx.gate.unjudged
}

# METADATA
# title: Sets a variable that makes programs load or run something
# custom:
#   id: SBX-GATE-0002
#   severity: high
#   category: evasion
#   cwe: ["CWE-426"]
#   attack: ["T1574.006"]
#   remediation: "Leave the variable out; name what is to be loaded in the program."
findings contains {"id": "SBX-GATE-0002", "msg": sprintf("%s is set to %s", [e.name, e.value])} if {
	some e in input.ctx.gate.env
	e.class == "startup"
}

# METADATA
# title: Looks for programs or settings where the sandbox's user can write
# custom:
#   id: SBX-GATE-0003
#   severity: high
#   category: evasion
#   cwe: ["CWE-426", "CWE-427"]
#   attack: ["T1574.007"]
#   remediation: "Keep PATH and HOME as they are, and name programs of the workspace by their path."
findings contains {"id": "SBX-GATE-0003", "msg": sprintf("%s is set to %s", [e.name, e.value])} if {
	some e in input.ctx.gate.env
	e.class == "search"
}

# METADATA
# title: Runs on unwatched and reads code of the workspace later
# custom:
#   id: SBX-GATE-0004
#   severity: high
#   category: evasion
#   cwe: ["CWE-367"]
#   attack: ["T1574"]
#   remediation: "Run it in the foreground, where a change of what it loads ends it, or put the code into one file."
findings contains {"id": "SBX-GATE-0004", "msg": sprintf("%s is read when it is used, and may be another by then", [name])} if {
	input.ctx.gate.background
	some name in input.ctx.gate.later
}
