package caisson.rules.privilege_test

import data.caisson.rules.privilege

test_speaks_of_what_it_names if {
	some f in privilege.findings with input as {"actions": {"elevate": [{"at": 0, "op": "elevate", "detail": "sudo", "by": "sudo", "args": []}]}}
	f.id == "SBX-PRIV-0001"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(privilege.findings) == 0 with input as {"actions": {"platform": [{"at": 0, "op": "platform", "detail": "", "by": "x", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(privilege.findings) == 0 with input as {}
}

test_another_user if {
	setuid := {"at": 0, "op": "setuid", "detail": "", "by": "os.setuid", "args": [""], "idle": true}
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0004"} with input as {"actions": {"setuid": [setuid]}}
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0001"} with input as {"actions": {"setuid": [object.union(setuid, {"idle": false})]}}
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0001"} with input as {"actions": {"setuid": [object.union(setuid, {"args": ["0"]})]}}
}

test_a_node if {
	node := {"at": 0, "op": "device_node", "detail": "", "by": "os.mknod", "args": [""], "idle": true}
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0004"} with input as {"actions": {"device_node": [node]}}
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0002"} with input as {"actions": {"device_node": [object.union(node, {"args": ["/dev/x"]})]}}
}

does(op) := {"actions": {op: [{"at": 0, "line": 1, "op": op, "detail": "x", "by": "y", "args": [], "from": [], "idle": false}]}}

# Each kind of act has its rule, and only that.
test_kinds if {
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0001"} with input as does("accounts")
	{f.id | some f in privilege.findings} == {"SBX-PRIV-0002"} with input as does("reboot")
	count(privilege.findings) == 0 with input as does("host_info")
}
