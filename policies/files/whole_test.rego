package caisson.rules.files_test

import data.caisson.rules.files

home_listed := {"at": 0, "line": 1, "op": "list", "path": "/home/sandbox", "class": "home", "by": "os.walk", "recursive": true, "traversal": false, "folded": true}

test_overwriting_what_a_home_lists if {
	some f in files.findings with input as {"files": {
		"list": {"home": [home_listed]},
		"write": {"home": [{"at": 1, "line": 2, "op": "write", "path": "/home/sandbox/", "class": "home", "by": "open", "folded": false}]},
	}}
	f.id == "SBX-FS-0020"
}

test_a_name_of_the_programs_own_was_not_listed if {
	own := {"at": 1, "line": 2, "op": "write", "path": "", "class": "unknown", "by": "touch", "folded": false, "where": "own_process"}
	ids(own_doc(own)) == ids(own_doc(object.union(own, {"op": "read"})))
	"SBX-FS-0020" in ids(own_doc(object.union(own, {"where": "command"})))
}

own_doc(f) := {"files": {"list": {"home": [home_listed]}, f.op: {"unknown": [f]}}}

test_a_list_alone_changes_nothing if {
	ids := {f.id | some f in files.findings} with input as {"files": {"list": {"home": [home_listed]}}}
	not "SBX-FS-0020" in ids
	not "SBX-FS-0019" in ids
}

test_packing_a_home if {
	some f in files.findings with input as {"files": {"list": {"home": [object.union(home_listed, {"by": "tar"})]}}}
	f.id == "SBX-FS-0019"
}

test_dropping_data if {
	some f in files.findings with input as {"actions": {"drop_data": [{"at": 0, "by": "dropdb", "op": "drop_data"}]}}
	f.id == "SBX-FS-0021"
}

test_modes_of_both_spellings if {
	some mode in [{"by": "chmod", "args": ["4755"]}, {"by": "os.chmod", "args": ["2541"]}]
	some f in files.findings with input as {"actions": {"chmod_mode": [object.union(mode, {"at": 0, "op": "chmod_mode"})]}}
	f.id == "SBX-FS-0018"
}

test_data_places_are_noted_only if {
	ids := {f.id | some f in files.findings} with input as {"files": {"list": {"outside": [{"at": 0, "line": 1, "op": "list", "path": "/data/x", "class": "outside", "by": "ls", "folded": true}]}}}
		with data.settings.data_places as ["/data"]
		with data.settings.listed_classes as ["outside"]
	ids == {"SBX-FS-0013"}
}

ids(doc) := {f.id | some f in files.findings with input as doc}

gone(path, by, operand) := {
	"files": {"delete": {"workspace": [{"at": 0, "line": 1, "path": path, "class": "workspace", "by": by, "recursive": true, "folded": true, "where": ""}]}},
	"commands": {"rm": [{"at": 1, "line": 1, "operands": [operand], "wrappers": []}]},
}

# The folder by its path, and not by "." or "*" where somebody stands in it.
test_whole_workspace if {
	"SBX-FS-0030" in ids(gone("/workspace", "rm", "/workspace"))
	"SBX-FS-0030" in ids(gone("/workspace/*", "rm", "/workspace/*"))
	"SBX-FS-0030" in ids(gone("/workspace", "shutil.rmtree", ""))
	not "SBX-FS-0030" in ids(gone("/workspace", "rm", "."))
	not "SBX-FS-0030" in ids(gone("/workspace/build", "rm", "/workspace/build"))
	not "SBX-FS-0030" in ids(gone("/workspace", "find", ""))
}

listed(where, recursive, wrapper) := {
	"files": {"delete": {"unknown": [{"at": 0, "line": 1, "path": "", "class": "unknown", "by": "rm", "recursive": recursive, "folded": false, "where": where}]}},
	"commands": {"rm": [{"at": 1, "line": 1, "operands": [""], "wrappers": [wrapper]}]},
}

test_trees_of_a_list if {
	"SBX-FS-0031" in ids(listed("file:/workspace/l", true, "xargs"))
	not "SBX-FS-0031" in ids(listed("file:/workspace/l", false, "xargs"))
	not "SBX-FS-0031" in ids(listed("command", true, "xargs"))
	not "SBX-FS-0031" in ids(listed("file:/workspace/l", true, "sudo"))
}
