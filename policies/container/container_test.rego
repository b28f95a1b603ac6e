package caisson.rules.container_test

import data.caisson.rules.container

# What caisson plans by default.
config := {"Image": "sha256:1", "User": "0:0", "Entrypoint": ["/run/caisson/agent"]}

filter := `seccomp={"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"]}]}`

host := {
	"NetworkMode": "none", "IpcMode": "private", "PidMode": "", "UTSMode": "", "UsernsMode": "", "CapDrop": ["ALL"],
	"CapAdd": ["SETUID", "SETGID", "KILL", "SYS_PTRACE"], "SecurityOpt": ["no-new-privileges", filter], "ReadonlyRootfs": true,
	"Memory": 1, "MemorySwap": 1, "CpuQuota": 1, "NanoCpus": 0, "PidsLimit": 9, "Binds": null, "Devices": null, "PortBindings": null,
	"RestartPolicy": {"Name": "", "MaximumRetryCount": 0}, "MaskedPaths": null, "ReadonlyPaths": null, "OomKillDisable": null,
	"OomScoreAdj": 0, "CgroupParent": "", "ExtraHosts": null, "Links": null, "VolumesFrom": null, "Privileged": false,
	"Mounts": [{"Type": "bind", "Source": "/usr/libexec/caisson/caisson-agent", "Target": "/run/caisson/agent", "ReadOnly": true}],
}

ids(change) := {f.id | some f in container.findings with input as {"ctx": {"container": {"Config": config, "HostConfig": object.union(host, change)}}}}

bind(source) := {"Mounts": array.concat(host.Mounts, [{"Type": "bind", "Source": source, "Target": "/x"}])}

test_default_is_fine if ids({}) == set()

test_privileged if ids({"Privileged": true}) == {"SBX-BOX-0001"}

test_sockets if {
	every p in ["/var/run/docker.sock", "/run/docker.sock", "//var//run/./docker.sock", "/var/run", "/run", "/", "/var", "/run/containerd/containerd.sock", "/srv/engine.sock"] {
		"SBX-BOX-0002" in ids(bind(p))
	}
	"SBX-BOX-0002" in ids({"Binds": ["/var/run/docker.sock:/s"]})
}

test_sensitive if {
	every p in ["/", "/etc", "/etc/ssl", "/root/.ssh", "/proc", "/home", "/etc/", "/srv/x/../../etc"] {
		"SBX-BOX-0003" in ids(bind(p))
	}
}

test_folder_of_its_own if ids(bind("/srv/work/project")) == set()

test_namespaces if {
	every key in ["NetworkMode", "PidMode", "IpcMode", "UTSMode", "UsernsMode", "CgroupnsMode"] {
		"SBX-BOX-0004" in ids({key: "host"})
	}
	"SBX-BOX-0004" in ids({"PidMode": "container:abc"})
}

test_capabilities if {
	ids({"CapAdd": ["cap_sys_admin"]}) == {"SBX-BOX-0005"}
	ids({"CapDrop": []}) == {"SBX-BOX-0006"}
}

test_protections if {
	every o in ["seccomp=unconfined", "apparmor:unconfined", "label:disable", "systempaths=unconfined"] {
		ids({"SecurityOpt": ["no-new-privileges", filter, o]}) == {"SBX-BOX-0007"}
	}
	ids({"MaskedPaths": []}) == {"SBX-BOX-0007"}
	ids({"SecurityOpt": [filter]}) == {"SBX-BOX-0008"}
	ids({"SecurityOpt": null}) == {"SBX-BOX-0008", "SBX-BOX-0022"}
	ids({"ReadonlyRootfs": false}) == {"SBX-BOX-0009"}
}

test_system_calls if {
	ids({"SecurityOpt": ["no-new-privileges"]}) == {"SBX-BOX-0022"}
	every call in ["bpf", "keyctl", "io_uring_setup", "userfaultfd"] {
		ids({"SecurityOpt": ["no-new-privileges", sprintf(`seccomp={"syscalls":[{"names":["read",%q]}]}`, [call])]}) == {"SBX-BOX-0022"}
	}
}

test_limits if {
	every change in [{"Memory": 0, "MemorySwap": 0}, {"MemorySwap": -1}, {"PidsLimit": null}, {"PidsLimit": -1}, {"CpuQuota": 0}] {
		ids(change) == {"SBX-BOX-0010"}
	}
	ids({"OomKillDisable": true}) == {"SBX-BOX-0011"}
	ids({"OomScoreAdj": -900}) == {"SBX-BOX-0011"}
}

test_rest if {
	ids({"Devices": [{}]}) == {"SBX-BOX-0012"}
	ids({"Mounts": [{"Type": "bind", "Source": "/srv/a/b", "Target": "/x", "BindOptions": {"Propagation": "rshared"}}]}) == {"SBX-BOX-0013"}
	ids({"PortBindings": {"80/tcp": [{"HostPort": "80"}]}}) == {"SBX-BOX-0014"}
	ids({"NetworkMode": "bridge"}) == {"SBX-BOX-0015"}
	ids({"ExtraHosts": ["x:169.254.169.254"]}) == {"SBX-BOX-0016"}
	ids({"RestartPolicy": {"Name": "always"}}) == {"SBX-BOX-0017"}
	ids({"Sysctls": {"kernel.msgmax": "1"}}) == {"SBX-BOX-0019"}
	ids({"CgroupParent": "/x"}) == {"SBX-BOX-0019"}
}

test_configuration if {
	some f in container.findings with input as {"ctx": {"container": {"Config": object.union(config, {"Env": ["API_TOKEN=x"]}), "HostConfig": host}}}
	f.id == "SBX-BOX-0018"
	some g in container.findings with input as {"ctx": {"container": {"Config": object.union(config, {"Image": "x:latest"}), "HostConfig": host}}}
	g.id == "SBX-BOX-0020"
	some e in container.findings with input as {"ctx": {"container": {"Config": object.union(config, {"Entrypoint": ["sh"]}), "HostConfig": host}}}
	e.id == "SBX-BOX-0021"
}

# An engine of another host has the agent in a volume.
test_agent_in_a_volume if {
	volume := {"Type": "volume", "Source": "caisson-agent-0123456789abcdef", "Target": "/run/caisson/bin", "ReadOnly": true}
	remote := object.union(config, {"Entrypoint": ["/run/caisson/bin/caisson-agent"]})
	fine := {"ctx": {"container": {"Config": remote, "HostConfig": object.union(host, {"Mounts": [volume]})}}}
	count(container.findings) == 0 with input as fine
	every change in [{"ReadOnly": false}, {"Source": "somebodys"}, {"Target": "/x"}] {
		some f in container.findings with input as {"ctx": {"container": {"Config": remote, "HostConfig": object.union(host, {"Mounts": [object.union(volume, change)]})}}}
		f.id == "SBX-BOX-0021"
	}
}

# A sandbox of a runtime that is not an engine's.
jail := {"runtime": "jail", "network": "none", "walls": ["root read-only", "no privileges", "limits"], "not_enforced": null, "workspace": {"kind": "tmpfs", "source": ""}}

of_box(change) := {f.id | some f in container.findings with input as {"ctx": {"container": {"namespaces": []}, "sandbox": object.union(jail, change)}}}

test_any_runtime if {
	of_box({}) == set()
	of_box({"network": "open"}) == {"SBX-BOX-0015"}
	of_box({"workspace": {"kind": "host", "source": "/srv/work"}}) == set()
	"SBX-BOX-0003" in of_box({"workspace": {"kind": "host", "source": "/etc/x"}})
	of_box({"walls": ["root read-only", "no privileges"]}) == {"SBX-BOX-0026"}
	of_box({"walls": ["limits"]}) == {"SBX-BOX-0023"}
	of_box({"walls": null}) == {"SBX-BOX-0023", "SBX-BOX-0026"}
	of_box({"walls": ["limits"], "not_enforced": ["isolation", "network"]}) == {"SBX-BOX-0025"}
}

test_required if {
	of_box({"not_enforced": ["memory"]}) == set()
	weak := {"ctx": {"container": {}, "sandbox": object.union(jail, {"not_enforced": ["memory", "cpu"]})}}
	{f.id | some f in container.findings with input as weak with data.settings.require as ["pids", "memory"]} == {"SBX-BOX-0024"}
	count(container.findings) == 0 with input as weak with data.settings.require as ["network"]
}

test_nothing if count(container.findings) == 0 with input as {}
