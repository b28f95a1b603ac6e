package caisson.rules.gate_test

import data.caisson.rules.gate

ids(ctx) := {f.id | some f in gate.findings with input as {"ctx": {"gate": ctx}}}

test_unjudged if ids({"unjudged": [{"name": "x.rb", "why": "no extractor"}]}) == {"SBX-GATE-0001"}

test_startup if ids({"env": [{"name": "LD_PRELOAD", "value": "x.so", "class": "startup"}]}) == {"SBX-GATE-0002"}

test_search if ids({"env": [{"name": "PATH", "value": "/workspace", "class": "search"}]}) == {"SBX-GATE-0003"}

test_later if ids({"background": true, "later": ["x.py"]}) == {"SBX-GATE-0004"}

test_foreground if ids({"background": false, "later": ["x.py"]}) == set()

test_nothing if count(gate.findings) == 0 with input as {}
