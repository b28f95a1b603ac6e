package caisson.user.team

# METADATA
# title: Reads the customers' data
# custom:
#   id: DATA-1
#   severity: high
#   category: data
#   remediation: "Read testdata/ in its place."
#   match:
#     - {"language": "bash", "code": "cat customers/2026.csv"}
#     - {"language": "python", "code": "import pandas\npandas.read_csv('customers/2026.csv')"}
#   not_match:
#     - {"language": "bash", "code": "cat testdata/2026.csv"}
findings contains {"id": "DATA-1", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in ["read", "copy_src"]
	some f in input.files[op].workspace
	startswith(f.path, "/workspace/customers/")
}

# METADATA
# title: Installs a package without its version
# custom:
#   id: PIN-1
#   severity: medium
#   category: packages
#   remediation: "Name the version: pip install NAME==VERSION."
#   match:
#     - {"language": "bash", "code": "pip install requests"}
#     - {"language": "python", "code": "import subprocess\nsubprocess.run(['pip3', 'install', 'requests'])"}
#   not_match:
#     - {"language": "bash", "code": "pip install requests==2.32.3"}
#     - {"language": "bash", "code": "pip install -r requirements.txt"}
#     - {"language": "bash", "code": "pip list"}
findings contains {"id": "PIN-1", "at": c.at, "msg": sprintf("%s is installed in any version", [wanted])} if {
	some name in ["pip", "pip3"]
	some c in input.commands[name]
	c.operands[0] == "install"
	not "r" in c.flags
	some i, wanted in c.operands
	i > 0
	not contains(wanted, "==")
}

# METADATA
# title: Sends a file to a host of ours
# custom:
#   id: SEND-1
#   severity: high
#   category: data
#   remediation: "Hand it over as an artifact."
#   match:
#     - {"language": "bash", "code": "curl -T report.csv https://intake.corp.test/"}
#     - {"language": "python", "code": "import requests\ntext = open('report.csv').read()\nrequests.post('https://intake.corp.test/', data=text)"}
#   not_match:
#     - {"language": "bash", "code": "curl https://intake.corp.test/"}
#     - {"language": "python", "code": "import requests\nrequests.post('https://intake.corp.test/', data='done')"}
findings contains {"id": "SEND-1", "at": n.at, "verdict": "deny", "msg": sprintf("%s goes to %s", [path, n.host])} if {
	some op in ["request", "upload", "connect"]
	some n in input.net[_][op]
	endswith(n.host, ".corp.test")
	some origin in n.carries
	startswith(origin, "file:")
	path := substring(origin, 5, -1)
	path in read_here
}

# read_here are the files of the workspace that the program reads.
read_here contains trim_prefix(f.path, "/workspace/") if some f in input.files.read.workspace

read_here contains f.path if some f in input.files.read.workspace
