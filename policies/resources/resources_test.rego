package caisson.rules.resources_test

import data.caisson.rules.resources

test_speaks_of_what_it_names if {
	some f in resources.findings with input as {"net": {"loopback": {"send_udp": [{"at": 0, "host": "127.0.0.1", "port": 53, "by": "nc"}]}}}
	f.id == "SBX-RES-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(resources.findings) == 0 with input as {"net": {"allowed": {"send_udp": [{"at": 0, "host": "127.0.0.1", "port": 53, "by": "nc"}]}}}
}

test_is_silent_about_nothing if {
	count(resources.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in resources.findings with input as doc}

seq(argv, to) := {"commands": {"seq": [{"at": 0, "line": 1, "name": "seq", "argv": argv, "operands": array.slice(argv, 1, count(argv)), "pipe_to": to, "in": [], "wrappers": []}]}}

# A billion numbers are too many, one less is not.
test_seq_at_its_bound if {
	"SBX-RES-0004" in ids(seq(["seq", "1000000000"], []))
	not "SBX-RES-0004" in ids(seq(["seq", "999999999"], []))
	"SBX-RES-0004" in ids(seq(["seq", "1e12"], []))
	not "SBX-RES-0004" in ids(seq(["seq", "x"], []))
}

# What is made of each number counts earlier.
test_seq_that_makes_files if {
	touch := {"commands": {"touch": [{"at": 1, "line": 1, "wrappers": ["xargs"]}]}}
	"SBX-RES-0004" in ids(object.union(seq(["seq", "50000"], ["xargs"]), touch))
	not "SBX-RES-0004" in ids(object.union(seq(["seq", "49999"], ["xargs"]), touch))
	not "SBX-RES-0004" in ids(seq(["seq", "50000"], ["xargs"]))
	not "SBX-RES-0004" in ids(object.union(seq(["seq", "50000"], ["head"]), touch))
}

dd(argv) := {"commands": {"dd": [{"at": 0, "line": 1, "name": "dd", "argv": argv}]}}

test_dd_at_its_bounds if {
	"SBX-RES-0004" in ids(dd(["dd", "if=/dev/zero", "of=x"]))
	"SBX-RES-0004" in ids(dd(["dd", "if=/dev/urandom", "of=x", "bs=1M", "count=100000"]))
	not "SBX-RES-0004" in ids(dd(["dd", "if=/dev/zero", "of=x", "bs=1M", "count=99999"]))
	not "SBX-RES-0004" in ids(dd(["dd", "if=/dev/zero", "of=/dev/null"]))
	not "SBX-RES-0004" in ids(dd(["dd", "if=disk.img", "of=x"]))
}

loop(kind, detail) := {"structs": {kind: [{"at": 0, "line": 1, "kind": kind, "detail": detail}]}}

# An endless loop is one where it costs something.
test_endless_loops if {
	"SBX-RES-0002" in ids(loop("infinite_loop", "busy"))
	"SBX-RES-0002" in ids(loop("infinite_loop", "memory is taken in a loop without end"))
	"SBX-RES-0002" in ids(loop("infinite_loop", "recursion"))
	not "SBX-RES-0002" in ids(loop("infinite_loop", ""))
	not "SBX-RES-0002" in ids(loop("infinite_loop", "not busy"))
	"SBX-RES-0005" in ids(loop("infinite_loop", "threading.Thread.start"))
	"SBX-RES-0002" in ids(loop("huge_alloc", "x"))
	"SBX-RES-0006" in ids(loop("key_search", "x"))
}

hash(from, within, operands) := {"commands": {
	"md5sum": [{"at": 0, "line": 1, "operands": operands, "pipe_from": from, "in": within}],
	"break": [{"at": 1, "line": 2, "in": ["for"]}],
}}

# Texts of a loop that ends at the first hit are tried; files are checked.
test_key_search_by_programs if {
	"SBX-RES-0006" in ids(hash(["echo"], ["for"], []))
	not "SBX-RES-0006" in ids(hash(["cat"], ["for"], []))
	not "SBX-RES-0006" in ids(hash(["echo"], ["for"], ["file"]))
	not "SBX-RES-0006" in ids(hash(["echo"], ["function:f"], []))
	"SBX-RES-0006" in ids({"commands": object.remove(hash(["printf"], ["for", "for"], []).commands, ["break"])})
	not "SBX-RES-0006" in ids({"commands": object.remove(hash(["printf"], ["for"], []).commands, ["break"])})
}
