# METADATA
# scope: package
# title: Rules about processes
package caisson.rules.processes

# METADATA
# title: Kills processes
# custom:
#   id: SBX-PROC-0001
#   severity: high
#   category: processes
#   cwe: ["CWE-250"]
#   attack: ["T1489"]
#   remediation: "End only what the program started, by its own handle."
#   match:
#     - {"language": "bash", "code": "kill -9 1"}
#     - {"language": "bash", "code": "pkill -f x"}
#     - {"language": "bash", "code": "kill -9 -1"}
#     - {"language": "bash", "code": "kill -1"}
#     - {"language": "bash", "code": "kill -1 $x"}
#     - {"language": "bash", "code": "kill -USR1 -1"}
#     - {"language": "bash", "code": "sleep 9 & kill -1 $! -1"}
#     - {"language": "bash", "code": "kill $(pgrep -P 1)"}
#     - {"language": "bash", "code": "kill $(pgrep -P $$ -P 1)"}
#     - {"language": "bash", "code": "kill $(pgrep -P1 -P $$)"}
#     - {"language": "bash", "code": "kill $(pgrep -P $$ \"$x\" --parent=1)"}
#     - {"language": "bash", "code": "PID=$!; read PID; kill $PID"}
#     - {"language": "bash", "code": "f() { kill $PID; }; PID=1"}
#     - {"language": "bash", "code": "sleep 9 & kill $! 1"}
#     - {"language": "bash", "code": "sleep 9 & kill $(($! * 0 + 1))"}
#     - {"language": "bash", "code": "kill -9 $1"}
#     - {"language": "python", "code": "import os\nos.kill(1,9)"}
#     - {"language": "javascript", "code": "process.kill(1)"}
#     - {"language": "bash", "code": "pkill -P 1"}
#     - {"language": "bash", "code": "pkill -P $$ sshd"}
#     - {"language": "bash", "code": "kill $(cat /run/sshd.pid)"}
#     - {"language": "bash", "code": "kill 0 1"}
#     - {"language": "bash", "code": "kill 0 $1"}
#     - {"language": "bash", "code": "kill -9 -1 0"}
#     - {"language": "bash", "code": "kill $PID"}
#     - {"language": "bash", "code": ". /tmp/lib.sh; kill $PID"}
#     - {"language": "bash", "code": ". ./lib.sh; kill $PID 1"}
#     - {"language": "bash", "code": "echo $! > $A; kill $(cat $B)"}
#   not_match:
#     - {"language": "bash", "code": "kill -l"}
#     - {"language": "bash", "code": "kill -0 $PID"}
#     - {"language": "bash", "code": "sleep 9 & kill -1 $!; kill -USR1 $!"}
#     - {"language": "bash", "code": "kill $(pgrep -P $$)"}
#     - {"language": "bash", "code": "kill $(cat \"$(dirname \"$0\")/x.pid\")"}
#     - {"language": "bash", "code": "start() { a & PID=$!; }; stop() { kill $PID; }; \"$1\""}
#     - {"language": "bash", "code": "trap 'kill 0' EXIT"}
#     - {"language": "bash", "code": ". ./lib.sh; start; kill $SERVER_PID"}
#     - {"language": "bash", "code": "serve & echo $! > $PIDFILE; kill $(cat $PIDFILE)"}
#     - {"language": "bash", "code": "serve & PID=$!\ntrap \"kill $PID\" EXIT\nwait"}
#     - {"language": "bash", "code": "sleep 9 & kill %1"}
#     - {"language": "bash", "code": "sleep 9 & pid=$!\nkill $pid"}
#     - {"language": "bash", "code": "sleep 9 & pkill -P $$"}
#     - {"language": "bash", "code": "sleep 9 & kill $(jobs -p)"}
#     - {"language": "bash", "code": "kill $(cat server.pid)"}
#     - {"language": "python", "code": "import os,subprocess\np=subprocess.Popen(['sleep','9'])\nos.kill(p.pid, 15)"}
#     - {"language": "javascript", "code": "process.kill(process.pid)"}
#     - {"language": "javascript", "code": "const c = require('child_process').spawn('sleep', ['9']); process.kill(c.pid)"}
#     - {"language": "bash", "code": "serve & PID=$!\ntrap 'kill $PID' EXIT\nwait"}
#     - {"language": "python", "code": "import os\nos.kill(os.getpid(), 2)"}
#     - {"language": "python", "code": "import os\ndef stop(pid):\n    os.kill(pid, 15)"}
findings contains {"id": "SBX-PROC-0001", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if some a in kills

kills contains a if {
	some a in input.actions.kill
	not jobs_only(a)
	not passed_on(a)
	not own(a)
	not asks_only(a)
	not one_signal(a)
}

# METADATA
# title: Ends all processes, or the sandbox's own
# custom:
#   id: SBX-PROC-0003
#   severity: high
#   category: processes
#   cwe: ["CWE-250"]
#   attack: ["T1489", "T1562"]
#   remediation: "End only what the program started; `caisson kill` ends a session's runs."
#   match:
#     - {"language": "bash", "code": "kill -9 1"}
#     - {"language": "bash", "code": "kill -9 -1"}
#     - {"language": "python", "code": "import os\nos.kill(1, 9)"}
#     - {"language": "bash", "code": "pkill -f caisson-agent"}
#   not_match:
#     - {"language": "bash", "code": "kill -9 1234"}
#     - {"language": "bash", "code": "pkill -f app.py"}
findings contains {"id": "SBX-PROC-0003", "at": a.at, "msg": sprintf("%s %s", [a.by, concat(" ", a.args)])} if {
	some a in kills
	everything(a)
}

everything(a) if a.detail in {"all processes", "killall5"}

everything(a) if {
	some w in a.args
	regex.match(`^-?0*1$|caisson`, w)
}

# one_signal: -1 is the first word, and a signal; who gets it stands behind it,
# and is another fact.
one_signal(a) if {
	a.detail == "all processes"
	a.by == "kill"
	a.spot in killing
	not a.spot in killing_everybody
}

killing contains c.spot if some c in input.commands.kill

killing_everybody contains c.spot if {
	some c in input.commands.kill
	everybody(c.argv)
}

everybody(argv) if count(argv) < 3

everybody(argv) if {
	some i, w in argv
	i > 1
	regex.match(`^-0*1$`, w)
}

# asks_only: signal 0 asks whether there is such a process.
asks_only(a) if {
	a.by == "kill"
	a.spot in asking
}

asking contains c.spot if {
	some c in input.commands.kill
	c.argv[1] == "-0"
}

# asks_only: it asks first, on that line, whether what it ends is there, and the
# program was told what that is.
asks_only(a) if {
	a.by == "kill"
	a.line in asking_first
	not a.spot in numbered
}

asking_first contains c.line if {
	some c in input.commands.kill
	c.spot in asking
	not c.spot in numbered
}

# numbered are those that say which process it is.
numbered contains c.spot if {
	some c in input.commands.kill
	some i, word in c.argv
	i > 0
	regex.match(`^[0-9]+$|^-0*1$`, word)
}

# own: the program itself, or what it started; nothing else stands there.
own(a) if {
	count(a.from) > 0
	every from in a.from {
		own_origin(from)
	}
	words := [w | some w in a.args; w != ""]
	count(words) == 0
	a.by in {"kill", "os.kill", "os.killpg", "process.kill", "tree-kill", "fkill", "Deno.kill", "pkill"}
	a.detail in {"", "children", "os.killpg"}
}

# own: a file of the project that it sources started it, as it may end it.
own(a) if {
	"sourced" in a.from
	every from in a.from {
		of_project(from)
	}
	words := [w | some w in a.args; w != ""]
	count(words) == 0
	a.by in {"kill", "pkill"}
	a.detail in {"", "children"}
}

# own: all of the group that it is in, and nothing else.
own(a) if {
	a.by == "kill"
	a.detail == ""
	words := [w | some w in a.args; w != ""]
	count(words) > 0
	every w in words {
		w == "0"
	}
	count(a.from) == 0
}

own(a) if {
	a.by in {"os.kill", "os.killpg"}
	a.detail in {"", "0", "os.killpg"}
	a.args == ["0"]
	count(a.from) == 0
}

of_project(from) if from in {"sourced", "own_process"}

of_project(from) if startswith(from, "env:")

own_origin("own_process")

# The folder that the program lies in is part of the name of such a file.
own_origin("own_folder")

# A file of the workspace, where a program notes the number of another it started.
own_origin(from) if startswith(from, "file:/workspace/")

own_origin(from) if startswith(from, "file:/tmp/")

# passed_on: a function that nothing calls ends what its caller names.
passed_on(a) if {
	a.idle
	count([w | some w in a.args; w != ""]) == 0
}

# jobs_only: what the program itself started, by the number of its job.
jobs_only(a) if {
	a.detail in {"", "%1", "%2", "%%", "%+"}
	words := [w | some w in a.args; w != ""]
	count(words) > 0
	every w in words {
		startswith(w, "%")
	}
}

# METADATA
# title: Forks
# custom:
#   id: SBX-PROC-0002
#   severity: medium
#   category: processes
#   cwe: ["CWE-400"]
#   attack: ["T1106"]
#   remediation: "Use subprocess or threads."
#   match:
#     - {"language": "python", "code": "import os\nos.fork()"}
#   not_match:
#     - {"language": "python", "code": "import threading"}
findings contains {"id": "SBX-PROC-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["fork"]
	some a in input.actions[op]
	a.detail != "multiprocessing"
}
