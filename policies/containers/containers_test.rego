package caisson.rules.containers_test

import data.caisson.rules.containers

test_is_silent_about_the_rest if {
	count(containers.findings) == 0 with input as {"actions": {"kill": [{"at": 0, "op": "kill", "detail": "", "by": "kill", "args": []}]}}
}

test_is_silent_about_nothing if {
	count(containers.findings) == 0 with input as {}
}

ids(doc) := {f.id | some f in containers.findings with input as doc}

# docker is one call of a container engine's client.
docker(words) := {
	"actions": {"container": [{"at": 0, "line": 1, "spot": 10000001, "op": "container", "detail": "", "by": "docker", "args": words}]},
	"commands": {"docker": [{"line": 1, "spot": 10000001, "argv": words, "values": {}}]},
}

test_what_is_asked_of_an_engine if {
	every words in [
		["docker"],
		["docker", "ps"],
		["docker", "build", "."],
		["docker", "run", "--rm", "alpine", "true"],
		["docker", "run", "-v", "/workspace/a:/a", "alpine"],
		["docker", "run", "--network", "none", "alpine"],
		["docker", "compose", "config"],
	] {
		ids(docker(words)) == {"SBX-CTR-0003"}
	}
	every words in [
		["docker", "exec", "x", "sh"],
		["docker", "run", "--privileged", "alpine"],
		["docker", "run", "--pid=host", "alpine"],
		["docker", "run", "-v", "/:/host", "alpine"],
		["docker", "run", "-itv", "/etc:/x", "alpine"],
		["docker", "run", "-v/:/host", "alpine"],
		["docker", "run", "-v", "/workspace/../etc:/x", "alpine"],
		["docker", "run", "--mount", "type=bind,source=/,target=/x", "alpine"],
		["docker", "run", "--network", "host", "alpine"],
		["docker", "run", "--net=host", "alpine"],
		["docker", "pull", "registry.example.org/x"],
		["docker", "compose", "up"],
	] {
		ids(docker(words)) == {"SBX-CTR-0002"}
	}
}

# Another engine than the one at hand is somebody else's machine.
test_an_engine_elsewhere if {
	every flag in ["-H", "--host", "--context"] {
		call := docker(["docker", "ps"])
		away := object.union(call, {"commands": {"docker": [{"line": 1, "argv": ["docker", flag, "x", "ps"], "values": {flag: "x"}}]}})
		ids(away) == {"SBX-CTR-0002"}
	}
}

test_of_a_cluster if {
	ids({"actions": {"container": [{"at": 0, "line": 1, "op": "container", "detail": "", "by": "kubectl", "args": ["kubectl", "version"]}]}}) == {"SBX-CTR-0003"}
	ids({"actions": {"container": [{"at": 0, "line": 1, "op": "container", "detail": "", "by": "kubectl", "args": ["kubectl", "exec", "x"]}]}}) == {"SBX-CTR-0002"}
}
