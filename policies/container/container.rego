# METADATA
# scope: package
# title: Rules about the container itself
# description: >-
#   What is asked of the engine, before it is made: input.ctx.container has the
#   engine's own create request. The numbers are those of the CIS Docker
#   benchmark's run-time items. input.ctx.sandbox tells of a sandbox of any
#   runtime which that is, and what holds it.
package caisson.rules.container

host := input.ctx.container.HostConfig

config := input.ctx.container.Config

# A sandbox of whatever runtime.
box := input.ctx.sandbox

# The same where no engine's request says more.
other := input.ctx.sandbox if {
	input.ctx.container
	not host
}

# Folders of the host whose content decides about the host.
sensitive := {"/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/usr", "/bin", "/sbin", "/root", "/home", "/var", "/var/lib", "/var/lib/docker", "/var/lib/containerd", "/run", "/var/run", "/var/log", "/var/spool", "/opt", "/srv"}

# Where sockets of container engines are, with the folders that hold them.
sockets := ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd", "/run/podman", "/run/user", "/run/crio", "/var/run/crio", "/var/run/containerd"]

# Every mount in one form. What caisson itself binds is its agent, read-only.
mounts contains {"source": clean(m.Source), "target": m.Target, "ro": object.get(m, "ReadOnly", false), "propagation": object.get(object.get(m, "BindOptions", {}), "Propagation", "")} if {
	some m in host.Mounts
	m.Type == "bind"
	not own(m)
}

mounts contains {"source": clean(parts[0]), "target": parts[1], "ro": "ro" in options, "propagation": concat(",", [o | some o in options; contains(o, "shared")])} if {
	some b in host.Binds
	parts := split(b, ":")
	startswith(parts[0], "/")
	options := {o | some o in split(parts[count(parts) - 1], ",")}
}

mounts contains {"source": clean(folder.source), "target": "/workspace", "ro": false, "propagation": ""} if {
	folder := other.workspace
	folder.kind == "host"
}

own(m) if {
	m.Target == "/run/caisson/agent"
	m.ReadOnly
}

# A path as the host resolves it, as far as its text tells.
clean(p) := "/" if trim_right(regex.replace(p, `(/\.)*/+(\./+)*`, "/"), "/.") == ""

clean(p) := c if {
	c := trim_right(regex.replace(p, `(/\.)*/+(\./+)*`, "/"), "/")
	trim_right(c, "/.") != ""
}

under(p, folder) if p == folder

under(p, folder) if startswith(p, concat("", [folder, "/"]))

# METADATA
# title: Is privileged
# custom:
#   id: SBX-BOX-0001
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1611"]
#   cis: ["5.5"]
#   remediation: "Leave privileged out: nothing in a sandbox needs it."
findings contains {"id": "SBX-BOX-0001", "msg": "the container has every privilege of the host"} if host.Privileged == true

# METADATA
# title: Reaches the socket of a container engine
# custom:
#   id: SBX-BOX-0002
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1610", "T1611"]
#   cis: ["5.32"]
#   remediation: "Do not mount the engine's socket, nor a folder above it."
findings contains {"id": "SBX-BOX-0002", "msg": sprintf("%s is mounted at %s", [m.source, m.target])} if {
	some m in mounts
	some s in sockets
	reaches(m.source, s)
}

reaches(source, socket) if under(source, socket)

reaches(source, socket) if under(socket, source)

reaches("/", _)

reaches(source, _) if endswith(source, ".sock")

# METADATA
# title: Mounts a folder that decides about the host
# custom:
#   id: SBX-BOX-0003
#   severity: critical
#   category: container
#   cwe: ["CWE-668"]
#   attack: ["T1611"]
#   cis: ["5.6"]
#   remediation: "Give the sandbox a folder of its own, or copy files in and out."
findings contains {"id": "SBX-BOX-0003", "msg": sprintf("%s is mounted at %s", [m.source, m.target])} if {
	some m in mounts
	decides(m.source)
}

decides("/")

decides(p) if p in sensitive

decides(p) if {
	some folder in {"/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sys", "/usr", "/bin", "/sbin", "/root", "/var/lib/docker", "/var/lib/containerd", "/run", "/var/run"}
	under(p, folder)
}

decides(p) if contains(p, "/..")

# METADATA
# title: Shares a namespace with the host or another container
# custom:
#   id: SBX-BOX-0004
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-653"]
#   attack: ["T1611"]
#   cis: ["5.10", "5.16", "5.17", "5.21", "5.31"]
#   remediation: "Leave namespaces private; --network none or bridge."
findings contains {"id": "SBX-BOX-0004", "msg": sprintf("%s is %s", [key, mode])} if {
	some key in ["NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode"]
	mode := object.get(host, key, "")
	shared(mode)
}

shared("host")

shared("shareable")

shared(mode) if startswith(mode, "container:")

# METADATA
# title: Adds capabilities
# custom:
#   id: SBX-BOX-0005
#   severity: critical
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1611", "T1548"]
#   cis: ["5.4"]
#   remediation: "Add no capability."
findings contains {"id": "SBX-BOX-0005", "msg": sprintf("the capability %s is added", [cap])} if {
	some given in host.CapAdd
	cap := trim_prefix(upper(given), "CAP_")
	not cap in {"SETUID", "SETGID", "KILL", "SYS_PTRACE"}
}

# METADATA
# title: Keeps capabilities that the engine gives by default
# custom:
#   id: SBX-BOX-0006
#   severity: high
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1548"]
#   cis: ["5.4"]
#   remediation: "Drop ALL capabilities."
findings contains {"id": "SBX-BOX-0006", "msg": "not all capabilities are dropped"} if {
	host
	not "ALL" in {trim_prefix(upper(c), "CAP_") | some c in host.CapDrop}
}

# METADATA
# title: Switches off a protection of the kernel's interface
# custom:
#   id: SBX-BOX-0007
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-693"]
#   attack: ["T1562", "T1611"]
#   cis: ["5.2", "5.3", "5.22"]
#   remediation: "Leave seccomp, AppArmor, SELinux and masked paths as they are."
findings contains {"id": "SBX-BOX-0007", "msg": sprintf("the option %s", [o])} if {
	some o in host.SecurityOpt
	l := lower(o)
	some off in ["unconfined", "label:disable", "label=disable", "no-new-privileges:false", "no-new-privileges=false"]
	contains(l, off)
}

findings contains {"id": "SBX-BOX-0007", "msg": sprintf("%s is emptied", [key])} if {
	some key in ["MaskedPaths", "ReadonlyPaths"]
	host[key] == []
}

# METADATA
# title: Lets programs gain privileges
# custom:
#   id: SBX-BOX-0008
#   severity: high
#   category: container
#   cwe: ["CWE-269"]
#   attack: ["T1548.001"]
#   cis: ["5.26"]
#   remediation: "Set no-new-privileges."
findings contains {"id": "SBX-BOX-0008", "msg": "no-new-privileges is not set"} if {
	host
	options := object.get(host, "SecurityOpt", null)
	not any_no_new(options)
}

any_no_new(options) if {
	some o in options
	o in {"no-new-privileges", "no-new-privileges:true", "no-new-privileges=true"}
}

# METADATA
# title: Can write to its root file system
# custom:
#   id: SBX-BOX-0009
#   severity: high
#   category: container
#   cwe: ["CWE-732"]
#   attack: ["T1565"]
#   cis: ["5.13"]
#   remediation: "Keep the root read-only: the image's programs are trusted because nothing can write them."
findings contains {"id": "SBX-BOX-0009", "msg": "the root file system can be written"} if {
	host
	not host.ReadonlyRootfs
}

# METADATA
# title: Has no limit
# custom:
#   id: SBX-BOX-0010
#   severity: high
#   category: container
#   cwe: ["CWE-770"]
#   attack: ["T1499"]
#   cis: ["5.11", "5.12", "5.29"]
#   remediation: "Set --memory, --pids and --cpus."
findings contains {"id": "SBX-BOX-0010", "msg": sprintf("no limit of %s", [what])} if {
	host
	some what in unlimited
}

unlimited contains "memory" if object.get(host, "Memory", 0) <= 0

unlimited contains "swap" if object.get(host, "MemorySwap", 0) != object.get(host, "Memory", 0)

unlimited contains "processes" if not bounded_pids

unlimited contains "processor time" if {
	object.get(host, "NanoCpus", 0) <= 0
	object.get(host, "CpuQuota", 0) <= 0
}

bounded_pids if host.PidsLimit > 0

# METADATA
# title: Is spared when memory runs short
# custom:
#   id: SBX-BOX-0011
#   severity: high
#   category: container
#   cwe: ["CWE-770"]
#   attack: ["T1499"]
#   cis: ["5.25"]
#   remediation: "Leave OomKillDisable and OomScoreAdj alone."
findings contains {"id": "SBX-BOX-0011", "msg": "the kernel may not end it for memory"} if host.OomKillDisable == true

findings contains {"id": "SBX-BOX-0011", "msg": sprintf("its score is %d", [host.OomScoreAdj])} if host.OomScoreAdj < 0

# METADATA
# title: Has devices
# custom:
#   id: SBX-BOX-0012
#   severity: high
#   category: container
#   cwe: ["CWE-668"]
#   attack: ["T1611"]
#   cis: ["5.18"]
#   remediation: "Give the sandbox no device."
findings contains {"id": "SBX-BOX-0012", "msg": sprintf("%s is set", [key])} if {
	some key in ["Devices", "DeviceRequests", "DeviceCgroupRules"]
	some _ in host[key]
}

# METADATA
# title: Passes mounts on to the host
# custom:
#   id: SBX-BOX-0013
#   severity: high
#   category: container
#   cwe: ["CWE-668"]
#   attack: ["T1611"]
#   cis: ["5.20"]
#   remediation: "Leave propagation private."
findings contains {"id": "SBX-BOX-0013", "msg": sprintf("%s is mounted with propagation %s", [m.source, m.propagation])} if {
	some m in mounts
	m.propagation in {"shared", "rshared", "slave", "rslave"}
}

# METADATA
# title: Can be reached from outside
# custom:
#   id: SBX-BOX-0014
#   severity: high
#   category: network
#   cwe: ["CWE-668"]
#   attack: ["T1133"]
#   cis: ["5.8", "5.14"]
#   remediation: "Publish no port."
findings contains {"id": "SBX-BOX-0014", "msg": sprintf("the port %s is published", [port])} if {
	some port, _ in host.PortBindings
}

findings contains {"id": "SBX-BOX-0014", "msg": "every exposed port is published"} if host.PublishAllPorts == true

# METADATA
# title: Has a network
# custom:
#   id: SBX-BOX-0015
#   severity: medium
#   category: network
#   cwe: ["CWE-668"]
#   attack: ["T1041"]
#   cis: ["5.30"]
#   remediation: "Leave --network at none unless the program needs one."
findings contains {"id": "SBX-BOX-0015", "msg": sprintf("the network is %s", [host.NetworkMode])} if {
	host
	host.NetworkMode != "none"
}

findings contains {"id": "SBX-BOX-0015", "msg": sprintf("the network is %s", [other.network])} if {
	other
	other.network != "none"
}

# METADATA
# title: Maps names to addresses that tell or grant something
# custom:
#   id: SBX-BOX-0016
#   severity: high
#   category: network
#   cwe: ["CWE-918"]
#   attack: ["T1552.005"]
#   cis: ["5.30"]
#   remediation: "Leave extra hosts and links out."
findings contains {"id": "SBX-BOX-0016", "msg": sprintf("%s has %v", [key, host[key]])} if {
	some key in ["ExtraHosts", "Links", "VolumesFrom"]
	some _ in host[key]
}

# METADATA
# title: Comes back by itself
# custom:
#   id: SBX-BOX-0017
#   severity: high
#   category: container
#   cwe: ["CWE-770"]
#   attack: ["T1543"]
#   cis: ["5.15"]
#   remediation: "Leave the restart policy out."
findings contains {"id": "SBX-BOX-0017", "msg": sprintf("its restart policy is %s", [host.RestartPolicy.Name])} if {
	host
	not host.RestartPolicy.Name in {"", "no"}
}

# METADATA
# title: Carries a secret
# custom:
#   id: SBX-BOX-0018
#   severity: high
#   category: credentials
#   cwe: ["CWE-522"]
#   attack: ["T1552"]
#   cis: ["4.10"]
#   remediation: "Keep secrets out of the container's configuration, which docker inspect shows."
findings contains {"id": "SBX-BOX-0018", "msg": sprintf("the variable %s", [name])} if {
	some kv in config.Env
	name := split(kv, "=")[0]
	regex.match(`(?i)(password|passwd|secret|token|api_?key|private_?key|credential)`, name)
}

# METADATA
# title: Alters the kernel's settings or its place among the host's groups
# custom:
#   id: SBX-BOX-0019
#   severity: high
#   category: container
#   cwe: ["CWE-732"]
#   attack: ["T1611"]
#   cis: ["5.25"]
#   remediation: "Leave sysctls and the cgroup's parent alone."
findings contains {"id": "SBX-BOX-0019", "msg": sprintf("the sysctl %s", [key])} if {
	some key, _ in host.Sysctls
}

findings contains {"id": "SBX-BOX-0019", "msg": sprintf("the cgroup's parent is %s", [host.CgroupParent])} if {
	host
	not object.get(host, "CgroupParent", "") == ""
}

# METADATA
# title: Is not the image that was looked at
# custom:
#   id: SBX-BOX-0020
#   severity: medium
#   category: container
#   cwe: ["CWE-494"]
#   attack: ["T1525"]
#   cis: ["5.28"]
#   remediation: "Name the image by its digest."
findings contains {"id": "SBX-BOX-0020", "msg": sprintf("the image %s is named by a tag", [config.Image])} if {
	config.Image
	not contains(config.Image, "sha256:")
}

# METADATA
# title: Its first process is not the agent
# custom:
#   id: SBX-BOX-0021
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-284"]
#   attack: ["T1610"]
#   cis: ["5.24"]
#   remediation: "Leave entrypoint and user as caisson plans them: what runs is started, and given up its rights, by the agent."
findings contains {"id": "SBX-BOX-0021", "msg": sprintf("the entrypoint is %v", [object.get(config, "Entrypoint", null)])} if {
	config
	not agent_first
}

agent_first if config.Entrypoint == ["/run/caisson/agent"]

# On an engine of another host the agent comes in a volume of caisson's.
agent_first if {
	config.Entrypoint == ["/run/caisson/bin/caisson-agent"]
	some m in host.Mounts
	m.Target == "/run/caisson/bin"
	m.Type == "volume"
	m.ReadOnly
	startswith(m.Source, "caisson-agent-")
}

# METADATA
# title: Opens system calls that reach the host
# custom:
#   id: SBX-BOX-0022
#   severity: high
#   category: container
#   cwe: ["CWE-693"]
#   attack: ["T1611"]
#   cis: ["5.22"]
#   remediation: "Leave the seccomp profile as caisson plans it: engines' own open some of these calls, and sockets of the machine that the host runs on."
findings contains {"id": "SBX-BOX-0022", "msg": "the seccomp profile is the engine's own"} if {
	host
	options := object.get(host, "SecurityOpt", null)
	not any_profile(options)
}

findings contains {"id": "SBX-BOX-0022", "msg": sprintf("its seccomp profile names %s", [call])} if {
	some o in host.SecurityOpt
	startswith(o, "seccomp=")
	some call in ["bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "add_key", "request_key"]
	contains(o, sprintf("%q", [call]))
}

any_profile(options) if {
	some o in options
	startswith(o, "seccomp=")
}

# METADATA
# title: Has no wall of its runtime's
# custom:
#   id: SBX-BOX-0023
#   severity: high
#   category: container
#   cwe: ["CWE-653"]
#   attack: ["T1611"]
#   remediation: "Use a runtime that isolates: --runtime docker, or bubblewrap."
findings contains {"id": "SBX-BOX-0023", "msg": sprintf("a sandbox of the runtime %s has not: %s", [other.runtime, wall])} if {
	other
	not "isolation" in known_missing
	some wall in ["root read-only", "no privileges"]
	not wall in {w | some w in other.walls}
}

# What a runtime says itself that it does not enforce.
known_missing := {what | some what in other.not_enforced}

# METADATA
# title: Isolates nothing
# custom:
#   id: SBX-BOX-0025
#   severity: medium
#   category: container
#   cwe: ["CWE-653"]
#   attack: ["T1611"]
#   remediation: "Run trusted code alone by it, or use --runtime docker or bubblewrap. require: [isolation] in data/settings.yaml forbids it."
findings contains {"id": "SBX-BOX-0025", "msg": sprintf("the runtime %s isolates nothing: a program has the files and the network of this host", [other.runtime])} if {
	other
	"isolation" in known_missing
}

# METADATA
# title: Has no limits
# custom:
#   id: SBX-BOX-0026
#   severity: medium
#   category: container
#   cwe: ["CWE-770"]
#   attack: ["T1499"]
#   remediation: "Use a runtime that enforces limits: caisson version --json says what each does not. require: [memory, cpu, pids] in data/settings.yaml forbids it."
findings contains {"id": "SBX-BOX-0026", "msg": sprintf("nothing holds a sandbox of the runtime %s to its limits", [other.runtime])} if {
	other
	not "limits" in {w | some w in other.walls}
}

# METADATA
# title: Does not enforce what is required
# custom:
#   id: SBX-BOX-0024
#   severity: critical
#   deny: true
#   category: container
#   cwe: ["CWE-770"]
#   attack: ["T1499"]
#   remediation: "Use a runtime that enforces it: caisson version --json says what each does not; data/settings.yaml has what is required."
findings contains {"id": "SBX-BOX-0024", "msg": sprintf("the runtime %s does not enforce %s, which is required", [box.runtime, what])} if {
	box
	some what in box.not_enforced
	what in data.settings.require
}
