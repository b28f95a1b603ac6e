# METADATA
# scope: package
# title: Rules about Dockerfiles
# description: The instructions of a Dockerfile, as input.ctx.dockerfile has them. What they run is judged as shell.
package caisson.rules.dockerfile

file := input.ctx.dockerfile

all_of(op) := [i | some i in file.instructions; i.op == op] if file

# METADATA
# title: Fetches a file that nothing vouches for
# custom:
#   id: SBX-DF-0001
#   severity: high
#   category: network
#   cwe: ["CWE-494"]
#   attack: ["T1105"]
#   remediation: "Give ADD a --checksum=sha256:…, or bring the file into the build's folder."
findings contains {"id": "SBX-DF-0001", "line": i.line, "msg": sprintf("ADD of %s without a checksum", [url])} if {
	some i in all_of("ADD")
	some url in i.args
	regex.match(`(?i)^(https?|ftp|git|ssh)(://|@)`, url)
	not checked(i)
}

checked(i) if {
	some f in i.flags
	startswith(f, "--checksum=sha256:")
}

# METADATA
# title: Keeps a secret in the image
# custom:
#   id: SBX-DF-0002
#   severity: high
#   category: credentials
#   cwe: ["CWE-538", "CWE-798"]
#   attack: ["T1552"]
#   cis: ["4.10"]
#   remediation: "Use RUN --mount=type=secret: what ENV and ARG hold stays in the image."
findings contains {"id": "SBX-DF-0002", "line": i.line, "msg": sprintf("%s %s", [i.op, name])} if {
	some op in ["ENV", "ARG"]
	some i in all_of(op)
	some word in i.args
	parts := split(word, "=")
	name := parts[0]
	regex.match(`(?i)(password|passwd|secret|token|api_?key|private_?key|credential)`, name)
	holds(op, parts, i)
}

holds(_, parts, _) if {
	count(parts) > 1
	not parts[1] in {"", "\"\"", "''"}
}

holds("ENV", parts, i) if {
	count(parts) == 1
	i.args[0] == parts[0]
	count(i.args) > 1
}

# METADATA
# title: Builds with more rights than a build has
# custom:
#   id: SBX-DF-0003
#   severity: critical
#   deny: true
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1611"]
#   remediation: "Leave --security=insecure and --network=host out."
findings contains {"id": "SBX-DF-0003", "line": i.line, "msg": sprintf("RUN %s", [f])} if {
	some i in all_of("RUN")
	some f in i.flags
	f in {"--security=insecure", "--network=host"}
}

# METADATA
# title: Is root when it runs
# custom:
#   id: SBX-DF-0004
#   severity: medium
#   category: privilege
#   cwe: ["CWE-250"]
#   attack: ["T1548"]
#   cis: ["4.1"]
#   remediation: "End with a USER that is not root; in a caisson sandbox programs run as another user anyway."
findings contains {"id": "SBX-DF-0004", "line": 1, "msg": "no user but root is set"} if {
	file.stages > 0
	users := [i | some i in all_of("USER"); i.last]
	not ends_well(users)
}

ends_well(users) if {
	u := users[count(users) - 1]
	not regex.match(`^(root|0)(:.*)?$`, u.args[0])
}

# METADATA
# title: Stands on an image that may be another tomorrow
# custom:
#   id: SBX-DF-0005
#   severity: medium
#   category: container
#   cwe: ["CWE-1357"]
#   attack: ["T1525"]
#   cis: ["4.2"]
#   remediation: "Name the base by its digest, name@sha256:…"
findings contains {"id": "SBX-DF-0005", "line": i.line, "msg": sprintf("FROM %s", [i.args[0]])} if {
	some i in all_of("FROM")
	not contains(i.args[0], "@sha256:")
	i.args[0] != "scratch"
	not i.args[0] in stages
}

stages := {s.args[2] | some s in all_of("FROM"); count(s.args) > 2}

# METADATA
# title: Is read by a frontend of somebody else's
# custom:
#   id: SBX-DF-0006
#   severity: high
#   category: execution
#   cwe: ["CWE-829"]
#   attack: ["T1195"]
#   remediation: "Leave the syntax line out, or name docker/dockerfile."
findings contains {"id": "SBX-DF-0006", "line": 1, "msg": sprintf("the frontend %s", [file.syntax])} if {
	file.syntax != ""
	not regex.match(`^(docker\.io/)?docker/dockerfile(-upstream)?(:|@|$)`, file.syntax)
}

# METADATA
# title: Cannot be judged
# custom:
#   id: SBX-DF-0007
#   severity: high
#   category: evasion
#   cwe: ["CWE-829"]
#   attack: ["T1027"]
#   remediation: "Use instructions of the reference, and sh or bash as SHELL."
findings contains {"id": "SBX-DF-0007", "line": 1, "msg": file.problem} if file.problem != ""

findings contains {"id": "SBX-DF-0007", "line": i.line, "msg": sprintf("SHELL %s", [i.text])} if {
	some i in all_of("SHELL")
	not regex.match(`^(/usr)?(/bin/)?(sh|bash|dash|ash)$`, i.args[0])
}

findings contains {"id": "SBX-DF-0007", "line": 1, "msg": "no FROM"} if {
	file
	file.stages == 0
}

# METADATA
# title: Works in a place of the system's
# custom:
#   id: SBX-DF-0008
#   severity: high
#   category: container
#   cwe: ["CWE-668"]
#   attack: ["T1611"]
#   remediation: "Use a folder of its own, by its absolute path."
findings contains {"id": "SBX-DF-0008", "line": i.line, "msg": sprintf("%s %s", [i.op, dir])} if {
	some op in ["WORKDIR", "VOLUME"]
	some i in all_of(op)
	some dir in i.args
	regex.match(`^/(proc|sys|dev|boot|etc|bin|sbin|lib|usr/bin|usr/sbin|run)(/|$)`, dir)
}

# METADATA
# title: Is relative to where the base happens to be
# custom:
#   id: SBX-DF-0009
#   severity: low
#   category: container
#   cwe: ["CWE-427"]
#   attack: ["T1574"]
#   remediation: "Give WORKDIR an absolute path."
findings contains {"id": "SBX-DF-0009", "line": i.line, "msg": sprintf("WORKDIR %s", [i.args[0]])} if {
	some i in all_of("WORKDIR")
	not regex.match(`^["']?[/$]`, i.args[0])
}

# METADATA
# title: Unpacks or fetches where a copy would do
# custom:
#   id: SBX-DF-0010
#   severity: low
#   category: container
#   cwe: ["CWE-22"]
#   attack: ["T1105"]
#   cis: ["4.9"]
#   remediation: "Use COPY."
findings contains {"id": "SBX-DF-0010", "line": i.line, "msg": sprintf("ADD %s", [concat(" ", i.args)])} if {
	some i in all_of("ADD")
	not regex.match(`(?i)(://|\.(tar|tgz|tar\.\w+)(\s|$))`, concat(" ", i.args))
}

# METADATA
# title: Leaves instructions for who builds on it
# custom:
#   id: SBX-DF-0011
#   severity: medium
#   category: persistence
#   cwe: ["CWE-829"]
#   attack: ["T1195"]
#   remediation: "Leave ONBUILD out."
findings contains {"id": "SBX-DF-0011", "line": i.line, "msg": sprintf("ONBUILD %s", [i.text])} if {
	some i in all_of("ONBUILD")
}

# METADATA
# title: Offers a shell to the network
# custom:
#   id: SBX-DF-0012
#   severity: medium
#   category: network
#   cwe: ["CWE-668"]
#   attack: ["T1021.004"]
#   cis: ["5.6"]
#   remediation: "Run no ssh server in a container."
findings contains {"id": "SBX-DF-0012", "line": i.line, "msg": "EXPOSE 22"} if {
	some i in all_of("EXPOSE")
	some port in i.args
	split(port, "/")[0] == "22"
}

# METADATA
# title: Sets a variable that makes every program load something
# custom:
#   id: SBX-DF-0013
#   severity: high
#   category: evasion
#   cwe: ["CWE-426"]
#   attack: ["T1574.006"]
#   remediation: "Leave the variable out."
findings contains {"id": "SBX-DF-0013", "line": i.line, "msg": sprintf("ENV %s", [word])} if {
	some i in all_of("ENV")
	some word in i.args
	regex.match(`^(LD_PRELOAD|LD_AUDIT|LD_LIBRARY_PATH|BASH_ENV|ENV|PYTHONSTARTUP|NODE_OPTIONS|GIT_SSH_COMMAND|PERL5OPT|RUBYOPT)(=|$)`, word)
}

# METADATA
# title: Takes a list of packages without installing any
# custom:
#   id: SBX-DF-0014
#   severity: low
#   category: container
#   cwe: ["CWE-1104"]
#   attack: ["T1195"]
#   remediation: "Put update and install into one RUN: the list is otherwise kept from another day."
findings contains {"id": "SBX-DF-0014", "line": i.line, "msg": "apt-get update alone"} if {
	some i in all_of("RUN")
	regex.match(`^\s*apt(-get)?\s+(-\S+\s+)*update\s*$`, i.text)
}
