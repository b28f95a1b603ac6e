package caisson.rules.files_test

import data.caisson.rules.files

test_speaks_of_what_it_names if {
	some f in files.findings with input as {"files": {"delete": {"system_config": [{"at": 0, "line": 1, "op": "delete", "path": "/etc/hosts", "class": "system_config", "by": "rm", "recursive": false, "traversal": false}]}}}
	f.id == "SBX-FS-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(files.findings) == 0 with input as {"files": {"delete": {"workspace": [{"at": 0, "line": 1, "op": "delete", "path": "/workspace/a", "class": "workspace", "by": "rm", "recursive": false, "traversal": false}]}}}
}

test_is_silent_about_nothing if {
	count(files.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in files.findings with input as doc}

used(op, class, path) := {"files": {op: {class: [{"at": 0, "line": 1, "op": op, "path": path, "class": class, "by": "x", "recursive": false, "folded": true, "traversal": false, "where": ""}]}}}

# Which classes are the system's is data.
test_system_classes_are_data if {
	"SBX-FS-0003" in ids(used("write", "system_config", "/etc/x"))
	not "SBX-FS-0003" in ids(used("write", "tmp", "/tmp/x"))
	some f in files.findings with input as used("write", "tmp", "/tmp/x") with data.settings.system_classes as ["tmp"]
	f.id == "SBX-FS-0003"
	count(files.findings) == 0 with input as used("write", "system_config", "/etc/x") with data.settings.system_classes as []
}

# A folder where data is mounted by habit ends at a slash.
test_places_of_data if {
	not "SBX-FS-0006" in ids(used("list", "outside", "/data/images"))
	not "SBX-FS-0006" in ids(used("list", "outside", "/data"))
	"SBX-FS-0006" in ids(used("list", "outside", "/database"))
	some f in files.findings with input as used("list", "outside", "/data/x") with data.settings.data_places as []
	f.id == "SBX-FS-0006"
}

# A folder outside that may as well be another is no listing of it.
test_guessed_folder if {
	sure := {"at": 0, "line": 1, "op": "list", "path": "/srv2", "class": "outside", "by": "os.listdir", "recursive": false, "folded": true, "traversal": false, "where": ""}
	"SBX-FS-0006" in ids({"files": {"list": {"outside": [sure]}}})
	not "SBX-FS-0006" in ids({"files": {"list": {"outside": [object.union(sure, {"folded": false})]}}})
	"SBX-FS-0006" in ids({"files": {"list": {"system_config": [object.union(sure, {"folded": false, "class": "system_config"})]}}})
}

mode(by, m) := {"actions": {"chmod_mode": [{"at": 0, "line": 1, "by": by, "args": [m]}]}}

test_modes_at_their_bounds if {
	"SBX-FS-0011" in ids(mode("chmod", "777"))
	"SBX-FS-0011" in ids(mode("chmod", "0666"))
	not "SBX-FS-0011" in ids(mode("chmod", "664"))
	not "SBX-FS-0011" in ids(mode("chmod", "755"))
	"SBX-FS-0018" in ids(mode("chmod", "4755"))
	not "SBX-FS-0018" in ids(mode("chmod", "1777"))
	"SBX-FS-0018" in ids(mode("os.chmod", "2541"))
	not "SBX-FS-0018" in ids(mode("os.chmod", "493"))
}
