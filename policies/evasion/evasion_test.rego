package caisson.rules.evasion_test

import data.caisson.rules.evasion

test_speaks_of_what_it_names if {
	some f in evasion.findings with input as {"dynamic": {"unparsable": [{"at": 0, "detail": "x", "from": []}]}}
	f.id == "SBX-EV-0002"
	f.at == 0
}

test_is_silent_about_the_rest if {
	count(evasion.findings) == 0 with input as {"env": {"write": {"plain": [{"at": 0, "name": "FOO"}]}}}
}

test_is_silent_about_nothing if {
	count(evasion.findings) == 0 with input as {}
}

test_modules_that_a_caller_names if {
	module := {"at": 0, "detail": "", "from": ["argv"], "library": false}
	{f.id | some f in evasion.findings} == {"SBX-EV-0005"} with input as {"dynamic": {"dyn_import": [module]}}
	count(evasion.findings) == 0 with input as {"dynamic": {"dyn_import": [object.union(module, {"library": true})]}}
}
