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
