package caisson.rules.tools_test

import data.caisson.rules.tools

ids(declared) := {f.id | some f in tools.findings with input as {"ctx": {"tool": {"name": "send", "declared": declared}}}}

test_allowed if ids("allow") == set()

test_asked if ids("ask") == {"SBX-TOOL-0001"}

test_denied if ids("deny") == {"SBX-TOOL-0002"}
