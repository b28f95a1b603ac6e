# METADATA
# scope: package
# title: The blacklist and plain look-ups
# description: Matches the rows of blacklist.yaml and lookups.yaml on facts. Their ids are the findings'.
package caisson.blacklist

default lookups := []

lookups := data.lookups

entries := array.concat(data.blacklist, lookups)

findings contains {"id": e.id, "at": f.at, "msg": sprintf("%s of %s by %s", [f.op, f.path, f.by])} if {
	some e in entries
	some op in e.files.op
	used := input.files[op]
	some class in e.files.class
	some f in used[class]
	recursive_enough(e.files, f)
}

recursive_enough(want, _) if not want.recursive

recursive_enough(want, f) if {
	want.recursive
	f.recursive
}

findings contains {"id": e.id, "at": n.at, "msg": sprintf("%s %s by %s", [n.op, n.host, n.by])} if {
	some e in entries
	some class in e.net.class
	some list in input.net[class]
	some n in list
}

findings contains {"id": e.id, "at": a.at, "msg": concat(" ", [a.op, a.detail, a.by])} if {
	some e in entries
	some op in e.actions.op
	some a in input.actions[op]
}

findings contains {"id": e.id, "at": s.at, "msg": sprintf("%s %s", [s.kind, s.detail])} if {
	some e in entries
	some kind in e.structs.kind
	some s in input.structs[kind]
}

findings contains {"id": e.id, "at": c.at, "msg": sprintf("the program %s", [c.name])} if {
	some e in entries
	some name in e.commands.name
	some c in input.commands[name]
	every flag in object.get(e.commands, "flags", []) {
		flag in c.flags
	}
}

# A shell that talks to a connection is a reverse shell, however it was joined.
findings contains {"id": "SBX-BL-0007", "at": c.at, "msg": sprintf("%s reads its commands from, or answers to, a connection", [c.name])} if {
	some name in {"sh", "bash", "dash", "ash", "zsh", "ksh", "csh", "tcsh", "fish", "busybox"}
	some c in input.commands[name]
	c.line in redirected
}

# redirected: there, what a command reads or writes is a connection.
redirected contains n.line if {
	some op in {"connect", "send_udp"}
	some class
	some n in input.net[class][op]
	startswith(n.by, ">")
}

findings contains {"id": "SBX-BL-0007", "at": c.at, "msg": sprintf("%s is joined to %s", [c.name, peer])} if {
	some name in {"sh", "bash", "dash", "ash", "zsh", "ksh"}
	some c in input.commands[name]
	some peer in {"nc", "ncat", "netcat", "telnet", "socat", "openssl"}
	peer in c.pipe_from
	peer in c.pipe_to
}

findings contains {"id": "SBX-BL-0007", "at": c.at, "msg": sprintf("an interactive %s is joined to %s", [c.name, peer])} if {
	some name in {"sh", "bash", "dash", "ash", "zsh", "ksh"}
	some c in input.commands[name]
	"i" in c.flags
	some peer in {"nc", "ncat", "netcat", "telnet", "socat", "openssl"}
	peer in array.concat(c.pipe_from, c.pipe_to)
}

# A script that answers connections itself may become a shell that reads them.
findings contains {"id": "SBX-BL-0007", "at": a.at, "msg": "the program answers connections itself, and starts a shell"} if {
	some a in input.actions.bind_self
	starts_shell
}

starts_shell if {
	some name in {"sh", "bash", "dash", "ash", "zsh", "ksh", "csh", "tcsh", "fish"}
	some c in input.commands[name]
	count(c.operands) == 0
	not "c" in c.flags
}
