package caisson.user.team_test

import data.caisson.user.team

test_a_file_of_customers_is_found if {
	some f in team.findings with input as {"files": {"read": {"workspace": [{"at": 0, "path": "/workspace/customers/a.csv", "by": "cat"}]}}}
	f.id == "DATA-1"
}

test_a_list_of_packages_is_none if {
	count(team.findings) == 0 with input as {"commands": {"pip": [{"at": 0, "operands": ["install"], "flags": ["r"]}]}}
}
