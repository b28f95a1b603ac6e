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
