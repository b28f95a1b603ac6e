package caisson.rules.credentials_test

import data.caisson.rules.credentials

test_speaks_of_what_it_names if {
	some f in credentials.findings with input as {"files": {"read": {"credential": [{"at": 0, "path": "/etc/shadow", "by": "cat"}]}}}
	f.id == "SBX-CRED-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(credentials.findings) == 0 with input as {"files": {"read": {"workspace": [{"at": 0, "path": "/workspace/a", "by": "cat"}]}}}
}

test_is_silent_about_nothing if {
	count(credentials.findings) == 0 with input as {}
}

test_a_store_of_credentials if {
	store := {"at": 0, "op": "credentials", "detail": "keyring", "by": "keyring.get_password", "args": [], "idle": false}
	{f.id | some f in credentials.findings} == {"SBX-CRED-0006"} with input as {"actions": {"credentials": [store]}}
	{f.id | some f in credentials.findings} == {"SBX-CRED-0008"} with input as {"actions": {"credentials": [object.union(store, {"idle": true})]}}
}

read(class) := {"files": {"read": {class: [{"at": 0, "line": 1, "path": "/x", "by": "cat", "class": class}]}}}

# What is secret is data.
test_secret_classes_are_data if {
	some f in credentials.findings with input as read("tmp") with data.settings.secret_classes as ["tmp"]
	f.id == "SBX-CRED-0001"
	count(credentials.findings) == 0 with input as read("credential") with data.settings.secret_classes as []
}

sent(class, from) := {"net": {class: {"upload": [{"at": 0, "line": 1, "op": "upload", "host": "x.test", "class": class, "url": "", "by": "curl", "port": 0, "carries": [from]}]}}}

# A secret that leaves is critical; one that goes where it may is not.
test_what_leaves if {
	some f in credentials.findings with input as sent("public", "file:/etc/passwd")
	f.id == "SBX-CRED-0003"
	count(credentials.findings) == 0 with input as sent("allowed", "file:/etc/passwd")
	count(credentials.findings) == 0 with input as sent("public", "file:/workspace/a")
	count(credentials.findings) == 0 with input as sent("public", "file:/etcetera")
}
