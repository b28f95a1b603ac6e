# METADATA
# scope: package
# title: Rules about containers
package caisson.rules.containers

# METADATA
# title: Drives a container engine or cluster
# custom:
#   id: SBX-CTR-0002
#   severity: high
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1610", "T1611"]
#   remediation: "A sandbox has no use for the engine."
#   match:
#     - {"language": "bash", "code": "docker run -v /:/host x"}
#     - {"language": "bash", "code": "kubectl get secrets"}
#     - {"language": "bash", "code": "kubectl apply -f a.yaml"}
#     - {"language": "bash", "code": "kubectl apply --dry-run=client --dry-run=none -f a.yaml"}
#     - {"language": "bash", "code": "docker compose -f a.yaml -p x up -d"}
#     - {"language": "bash", "code": "kubectl get pods,secrets"}
#     - {"language": "bash", "code": "kubectl get pod/a secret/b"}
#     - {"language": "bash", "code": "kubectl get pods $x"}
#     - {"language": "bash", "code": "kubectl get --raw /api/v1/secrets"}
#     - {"language": "bash", "code": "KUBECONFIG=./k kubectl get pods"}
#     - {"language": "bash", "code": "HOME=$PWD kubectl get pods"}
#     - {"language": "bash", "code": "docker compose -f config exec web sh"}
#     - {"language": "bash", "code": "kubectl run x --image=y -- sh -c z --dry-run=client"}
#     - {"language": "bash", "code": "kubectl apply -f --dry-run=client"}
#     - {"language": "bash", "code": "kubectl get pods -o go-template-file=/etc/shadow"}
#     - {"language": "bash", "code": "docker exec -it c sh"}
#     - {"language": "bash", "code": "docker -H tcp://10.0.0.1:2375 ps"}
#     - {"language": "bash", "code": "docker run --rm --privileged alpine true"}
#     - {"language": "bash", "code": "docker run -itv /etc:/e alpine"}
#     - {"language": "bash", "code": "docker pull x.test/a"}
#     - {"language": "bash", "code": "docker run --net=host alpine"}
#     - {"language": "bash", "code": "docker run --network container:x alpine"}
#     - {"language": "bash", "code": "docker run --name a alpine; docker rm -f a b"}
#     - {"language": "bash", "code": "docker run --name a alpine; docker exec --user a b sh"}
#     - {"language": "bash", "code": "docker run --name a alpine; docker exec --privileged a sh"}
#     - {"language": "bash", "code": "docker run --name \"$1\" alpine; docker stop $(docker ps -q)"}
#     - {"language": "bash", "code": "docker buildx build --allow security.insecure ."}
#     - {"language": "bash", "code": "docker run --rm quay.io.x.test/a/b"}
#     - {"language": "bash", "code": "docker run -v \"$(git rev-parse --show-toplevel)/../..:/src\" alpine"}
#   not_match:
#     - {"language": "bash", "code": "docker run --rm -it golang:1.22 go list std"}
#     - {"language": "bash", "code": "docker run --rm -v /workspace:/src alpine make"}
#     - {"language": "bash", "code": "docker run --rm --network none alpine true"}
#     - {"language": "bash", "code": "docker build -t app ."}
#     - {"language": "bash", "code": "docker buildx build --platform linux/arm64 ."}
#     - {"language": "bash", "code": "docker run --rm quay.io/a/b:1 true"}
#     - {"language": "bash", "code": "docker run -d --name a alpine; docker exec a true; docker rm -f a"}
#     - {"language": "bash", "code": "r=$(git rev-parse --show-toplevel); docker run --rm -v \"$r:/src\" alpine make"}
#     - {"language": "bash", "code": "kubectl drain --help"}
#     - {"language": "bash", "code": "kubectl apply --dry-run=client -f a.yaml; docker compose -f a.yaml config -q; docker system df"}
#     - {"language": "bash", "code": "kubectl get pods -n \"$ns\" -o wide; kubectl logs -f deploy/web"}
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-CTR-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some a in input.actions.container
	not a.at in harmless
}

# harmless are the facts of those that only look.
harmless contains a.at if {
	some a in input.actions.container
	looks(a)
}

looks(a) if {
	a.by in {"docker", "podman", "nerdctl"}
	only_looks(a)
}

# only_looks: it makes an image, or shows something, and starts nothing.
only_looks(a) if {
	a.args[1] in {"build", "version", "images", "ps", "logs", "info", "tag", "help", "inspect", "history", "search", "top", "port"}
	not elsewhere(a)
}

only_looks(a) if {
	a.args[1] in {"completion", "help"}
}

# only_looks: a container is run that gets nothing of the machine.
only_looks(a) if {
	a.args[1] in {"run", "create", "pull", "rmi", "start", "wait", "import", "load", "save"}
	not elsewhere(a)
	not gets(a)
	not registry(a)
}

# clients are the programs and calls that ask engines and clusters. What their
# commands say is kept by where they stand, each looked at once: a text may have
# thousands of them.
clients := {a.by | some a in input.actions.container}

# gets: a container that has more than its image, or than the workspace.
gets(a) if [a.by, a.line] in giving

giving contains [name, c.line] if {
	some name in clients
	some c in input.commands[name]
	some i, word in c.argv
	startswith(word, "-")
	gives(word, c.argv, i)
}

gives(word, _, _) if regex.match(`^(--privileged|--cap-add|--device|--security-opt|--volumes-from|--pid|--ipc|--uts|--userns|--cgroup|--group-add|--gpus|--runtime|--sysctl|--add-host|--env-file|--tmpfs)(=|$)`, word)

gives(word, argv, i) if {
	regex.match(`^(-[a-z]*v|--volume|--mount)(=|$)`, word)
	not of_workspace(word, argv[i + 1])
}

gives(word, _, _) if {
	regex.match(`^-[a-z]*v.`, word)
	not startswith(word, "--")
}

gives(word, argv, i) if {
	regex.match(`^--net(work)?(=|$)`, word)
	not regex.match(`=(none|bridge|default)$`, word)
	not word_then(argv, i, {"none", "bridge", "default"})
}

word_then(argv, i, values) if {
	not contains(argv[i], "=")
	argv[i + 1] in values
}

of_workspace(flag, value) if {
	not contains(flag, "=")
	regex.match(`^/workspace[^:]*:`, value)
	not contains(value, "..")
}

# registry: an image of a registry that is named, and not one of those that
# anybody's images come from, as they do where none is named.
registry(a) if {
	some i, word in a.args
	i > 1
	regex.match(`^[^/:]+(\.[^/:]+)+(:[0-9]+)?/`, word)
	not split(word, "/")[0] in data.settings.public_registries
}

# only_looks: an image is made by the other builder, without more than it has.
only_looks(a) if {
	a.args[1] == "buildx"
	a.args[2] in {"build", "bake", "ls", "inspect", "version", "du"}
	not elsewhere(a)
	not allows(a)
}

allows(a) if [a.by, a.spot] in allowing

allowing contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	some word in c.argv
	regex.match(`^--(allow|builder)(=|$)`, word)
}

# only_looks: a container that the program itself gave its name, and runs.
only_looks(a) if {
	manages(a)
	not elsewhere(a)
	not gets(a)
	[a.by, a.spot] in to_own
	not [a.by, a.spot] in to_strangers
}

manages(a) if a.args[1] in {"exec", "stop", "kill", "rm", "restart", "pause", "unpause"}

managed := {[a.by, a.spot] | some a in input.actions.container; manages(a)}

to_own contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	[name, c.spot] in managed
	of_own(name, c)
}

# to_strangers: one of these containers is not the program's own.
to_strangers contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	[name, c.spot] in managed
	not of_own(name, c)
}

of_own(by, c) if {
	c.operands[0] == "exec"
	[by, c.operands[1]] in own_names
}

of_own(by, c) if {
	c.operands[0] != "exec"
	count(c.operands) > 1
	every name in array.slice(c.operands, 1, count(c.operands)) {
		[by, name] in own_names
	}
}

own_names contains [by, name] if {
	some by in clients
	some c in input.commands[by]
	c.operands[0] in {"run", "create"}
	name := c.values["--name"]
	name != ""
}

only_looks(a) if {
	a.args[1] == "compose"
	[a.by, a.spot] in composing
	not elsewhere(a)
}

composing contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	composes(c.argv) in {"config", "ps", "logs", "ls", "version", "build", "images", "top"}
	not contains(concat(" ", c.argv), "://")
}

# composes is what compose is told to do, behind the files and the project that
# it is told of.
composes(argv) := argv[i] if {
	argv[1] == "compose"
	i := [j |
		some j, word in argv
		j > 1
		not startswith(word, "-")
		not argv[j - 1] in compose_options
	][0]
	every word in array.slice(argv, 2, i) {
		told_before(word)
	}
}

compose_options := {"-f", "--file", "-p", "--project-name", "--profile"}

told_before(word) if not startswith(word, "-")

told_before(word) if word in compose_options

# only_looks: what the engine has is listed.
only_looks(a) if {
	a.args[1] in {"system", "volume", "network", "image", "container"}
	a.args[2] in {"df", "info", "ls", "list"}
	not elsewhere(a)
}

looks(a) if {
	a.by == "kubectl"
	looks_at_cluster(a)
}

# looks_at_cluster: what would be done in a cluster is shown.
looks_at_cluster(a) if {
	a.spot in rehearsed
}

rehearsed contains c.spot if {
	some c in input.commands.kubectl
	c.operands[0] in {"apply", "create", "delete", "run", "scale", "label", "annotate"}
	[i | some i, word in c.argv; startswith(word, "--dry-run"); takes_no_value(c.argv[i - 1])] == [i | some i, word in c.argv; word == "--dry-run=client"]
	[word | some word in c.argv; startswith(word, "--dry-run")] == ["--dry-run=client"]
	not "--" in c.argv
	not asked_elsewhere(c)
	not contains(concat(" ", c.argv), "://")
}

# takes_no_value: what stands behind this word is not its value.
takes_no_value(word) if not startswith(word, "-")

takes_no_value(word) if contains(word, "=")

# looks_at_cluster: what runs in a cluster is shown, and nothing that is secret there.
looks_at_cluster(a) if {
	a.spot in shown
}

shown contains c.spot if {
	some c in input.commands.kubectl
	shows(c.operands)
	not told_otherwise(c)
}

shows(operands) if operands[0] in {"logs", "top", "cluster-info", "api-resources", "api-versions", "explain"}

shows(operands) if {
	operands[0] in {"get", "describe", "wait"}
	lower(split(operands[1], "/")[0]) in data.settings.cluster_resources
	every other in array.slice(operands, 2, count(operands)) {
		not of_another_kind(other)
	}
}

shows(operands) if {
	operands[0] == "rollout"
	operands[1] in {"status", "history"}
}

of_another_kind(word) if contains(word, ",")

of_another_kind(word) if {
	contains(word, "/")
	not lower(split(word, "/")[0]) in data.settings.cluster_resources
}

# told_otherwise: what is shown is not what these words say.
told_otherwise(c) if asked_elsewhere(c)

told_otherwise(c) if {
	some word in c.argv
	regex.match(`^--(raw|filename|kustomize|output-directory)(=|$)|^(-o|--output=|)=?(go-template|custom-columns|jsonpath|template)[a-z-]*file`, word)
}

told_otherwise(c) if {
	c.operands[0] != "logs"
	some word in c.argv
	regex.match(`^-[A-Za-z]*f`, word)
}

# asked_elsewhere: by other settings, which may name a program that is run, or
# of whom is not known.
asked_elsewhere(c) if "" in c.operands

asked_elsewhere(c) if {
	some word in c.argv
	regex.match(`^(--(kubeconfig|server|token|as|as-group|user|cluster|context|username|password)(=|$)|-[sk])`, word)
}

asked_elsewhere(_) if {
	some class
	some e in input.env.write[class]
	e.name in {"KUBECONFIG", "HOME"}
}

asked_elsewhere(c) if c.env.KUBECONFIG

asked_elsewhere(c) if c.env.HOME

looks_at_cluster(a) if {
	a.args[1] in {"version", "help", "completion", "kustomize"}
}

# looks: no more than what there is to say of a command.
looks(a) if {
	[a.by, a.spot] in helped
	not [a.by, a.spot] in done
}

helped contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	c.argv[count(c.argv) - 1] == "--help"
}

done contains [name, c.spot] if {
	some name in clients
	some c in input.commands[name]
	[name, c.spot] in helped
	does(c.argv)
}

does(argv) if argv[count(argv) - 1] != "--help"

does(argv) if {
	some word in argv
	word in {"--", "exec", "run"}
}

# elsewhere: the engine of another host is asked.
elsewhere(a) if [a.by, a.line] in away

away contains [name, c.line] if {
	some name in clients
	some c in input.commands[name]
	some flag in {"-H", "--host", "--context"}
	c.values[flag]
}

looks(a) if {
	count(a.args) <= 1
	a.by in {"docker", "podman", "nerdctl", "kubectl"}
}

# METADATA
# title: Asks a container engine
# custom:
#   id: SBX-CTR-0003
#   severity: medium
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1613"]
#   remediation: "A sandbox has no use for the engine."
#   match:
#     - {"language": "bash", "code": "docker build -t app ."}
#     - {"language": "bash", "code": "docker --version"}
#   not_match:
#     - {"language": "bash", "code": "docker run --privileged x"}
findings contains {"id": "SBX-CTR-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some a in input.actions.container
	a.at in harmless
}
