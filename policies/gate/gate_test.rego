package caisson.rules.gate_test

import data.caisson.rules.gate

ids(ctx) := {f.id | some f in gate.findings with input as {"ctx": {"gate": ctx}}}

test_unjudged if ids({"unjudged": [{"name": "x.rb", "why": "no extractor"}]}) == {"SBX-GATE-0001"}

unknown := [{"name": "x.rb", "language": "ruby"}]

test_unknown if ids({"unknown": unknown, "unknown_language": "ask"}) == {"SBX-GATE-0001"}

test_unknown_where_nobody_said if ids({"unknown": unknown}) == {"SBX-GATE-0001"}

test_unknown_allowed if ids({"unknown": unknown, "unknown_language": "allow"}) == {"SBX-GATE-0005"}

test_unknown_denied if ids({"unknown": unknown, "unknown_language": "deny"}) == {"SBX-GATE-0006"}

test_startup if ids({"env": [{"name": "LD_PRELOAD", "value": "x.so", "class": "startup"}]}) == {"SBX-GATE-0002"}

test_search if ids({"env": [{"name": "PATH", "value": "/workspace", "class": "search"}]}) == {"SBX-GATE-0003"}

test_later if ids({"background": true, "later": ["x.py"]}) == {"SBX-GATE-0004"}

test_foreground if ids({"background": false, "later": ["x.py"]}) == set()

test_terminal if ids({"terminal": true}) == {"SBX-GATE-0007"}

test_terminal_denied if ids({"terminal": true}) == {"SBX-GATE-0008"} with data.settings.terminals as "deny"

test_no_terminal if ids({"terminal": false}) == set()

test_nothing if count(gate.findings) == 0 with input as {}

# Each thing that is not judged is told, and by its name.
test_every_one_is_told if {
	told := {f.msg | some f in gate.findings with input as {"ctx": {"gate": {"unjudged": [{"name": "a", "why": "x"}, {"name": "b", "why": "y"}], "background": true, "later": ["c", "d"]}}}}
	count(told) == 4
	"a: x" in told
	some m in told
	startswith(m, "d is read")
}

test_a_variable_of_no_class if ids({"env": [{"name": "LANG", "value": "C", "class": "plain"}]}) == set()

test_two_classes_at_once if {
	env := [{"name": "LD_PRELOAD", "value": "x", "class": "startup"}, {"name": "HOME", "value": "/tmp", "class": "search"}]
	ids({"env": env, "background": true, "later": ["x"]}) == {"SBX-GATE-0002", "SBX-GATE-0003", "SBX-GATE-0004"}
}
