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

findings contains {"id": "SBX-GATE-0001", "msg": unknown(u)} if {
	some u in input.ctx.gate.unknown
	not input.ctx.gate.unknown_language == "allow"
	not input.ctx.gate.unknown_language == "deny"
}

unknown(u) := sprintf("%s: code in %s is not judged", [u.name, u.language])

# METADATA
# title: Runs code of a language that is not judged, as the configuration allows
# custom:
#   id: SBX-GATE-0005
#   severity: medium
#   category: evasion
#   cwe: ["CWE-829"]
#   attack: ["T1027"]
#   remediation: "Leave unknown_language out of caisson.yaml to be asked."
findings contains {"id": "SBX-GATE-0005", "msg": unknown(u)} if {
	some u in input.ctx.gate.unknown
	input.ctx.gate.unknown_language == "allow"
}

# METADATA
# title: Runs code of a language that is not judged, which the configuration forbids
# custom:
#   id: SBX-GATE-0006
#   severity: high
#   deny: true
#   category: evasion
#   cwe: ["CWE-829"]
#   attack: ["T1027"]
#   remediation: "Use python, node or shell, or set unknown_language in caisson.yaml to ask or allow."
findings contains {"id": "SBX-GATE-0006", "msg": unknown(u)} if {
	some u in input.ctx.gate.unknown
	input.ctx.gate.unknown_language == "deny"
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

# METADATA
# title: Opens a terminal, and what is typed there later is not judged
# custom:
#   id: SBX-GATE-0007
#   severity: medium
#   category: evasion
#   cwe: ["CWE-829"]
#   remediation: "Run the commands by caisson exec or in a caisson shell, which judge each."
findings contains {"id": "SBX-GATE-0007", "msg": "what is typed into its terminal later is not judged"} if {
	input.ctx.gate.terminal
	not data.settings.terminals == "deny"
}

# METADATA
# title: Opens a terminal, which the configuration forbids
# custom:
#   id: SBX-GATE-0008
#   severity: high
#   deny: true
#   category: evasion
#   cwe: ["CWE-829"]
#   remediation: "Run the commands by caisson exec or in a caisson shell, which judge each, or set terminals in settings.yaml to allow."
findings contains {"id": "SBX-GATE-0008", "msg": "what would be typed into its terminal could not be judged"} if {
	input.ctx.gate.terminal
	data.settings.terminals == "deny"
}
