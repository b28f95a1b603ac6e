package caisson.rules.dockerfile_test

import data.caisson.rules.dockerfile

from := {"op": "FROM", "line": 1, "flags": [], "args": ["x@sha256:1"], "text": "x@sha256:1", "stage": 1, "last": true}

user := {"op": "USER", "line": 9, "flags": [], "args": ["1000"], "text": "1000", "stage": 1, "last": true}

ids(more) := {f.id | some f in dockerfile.findings with input as {"ctx": {"dockerfile": {"syntax": "", "problem": "", "stages": 1, "instructions": array.concat([from, user], more)}}}}

one(op, args) := ids([{"op": op, "line": 2, "flags": [], "args": args, "text": concat(" ", args), "stage": 1, "last": true}])

flag(op, f) := ids([{"op": op, "line": 2, "flags": [f], "args": ["https://x.test/y.tar", "/"], "text": "", "stage": 1, "last": true}])

test_good if ids([]) == set()

test_add if {
	one("ADD", ["https://x.test/y.tar", "/"]) == {"SBX-DF-0001"}
	flag("ADD", "--checksum=sha256:00") == set()
	one("ADD", ["x", "/"]) == {"SBX-DF-0010"}
}

test_secrets if {
	one("ENV", ["API_TOKEN=x"]) == {"SBX-DF-0002"}
	one("ENV", ["DB_PASSWORD", "x"]) == {"SBX-DF-0002"}
	one("ARG", ["GITHUB_TOKEN"]) == set()
	one("ENV", ["MODE=x"]) == set()
}

test_rights if {
	flag("RUN", "--security=insecure") == {"SBX-DF-0003"}
	one("USER", ["root"]) == {"SBX-DF-0004"}
	one("FROM", ["x:latest"]) == {"SBX-DF-0005"}
}

test_places if {
	one("WORKDIR", ["/etc/x"]) == {"SBX-DF-0008"}
	one("WORKDIR", ["x"]) == {"SBX-DF-0009"}
	one("WORKDIR", ["/app"]) == set()
}

test_rest if {
	one("SHELL", ["powershell", "-c"]) == {"SBX-DF-0007"}
	one("SHELL", ["/bin/bash", "-c"]) == set()
	one("ONBUILD", ["RUN", "x"]) == {"SBX-DF-0011"}
	one("EXPOSE", ["22/tcp"]) == {"SBX-DF-0012"}
	one("ENV", ["LD_PRELOAD=x"]) == {"SBX-DF-0013"}
	one("RUN", ["apt-get", "update"]) == {"SBX-DF-0014"}
}

test_file if {
	about := {"syntax": "evil/x", "problem": "odd", "stages": 0, "instructions": []}
	{f.id | some f in dockerfile.findings with input as {"ctx": {"dockerfile": about}}} == {"SBX-DF-0006", "SBX-DF-0007"}
}

test_nothing if count(dockerfile.findings) == 0 with input as {}
