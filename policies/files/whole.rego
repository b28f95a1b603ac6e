package caisson.rules.files

# METADATA
# title: Encrypts files in place of the plain ones
# custom:
#   id: SBX-FS-0015
#   severity: high
#   category: destructive
#   cwe: ["CWE-506"]
#   attack: ["T1486"]
#   remediation: "Keep the plain files."
#   match:
#     - {"language": "python", "code": "import os\nfrom cryptography.fernet import Fernet\nf = Fernet(Fernet.generate_key())\nfor r, d, fs in os.walk('.'):\n    for n in fs:\n        p = os.path.join(r, n)\n        t = f.encrypt(open(p, 'rb').read())\n        open(p, 'wb').write(t)"}
#     - {"language": "bash", "code": "for f in *; do openssl enc -aes-256-cbc -in $f -out $f.enc -k x && rm $f; done"}
#     - {"language": "bash", "code": "find . -type f -exec gpg -c {} \\; -exec rm {} \\;"}
#   not_match:
#     - {"language": "bash", "code": "openssl enc -aes-256-cbc -in a -out a.enc -k x; rm a"}
#     - {"language": "bash", "code": "for f in *.enc; do openssl enc -d -in $f -out ${f%.enc}; rm $f; done"}
#     - {"language": "python", "code": "from cryptography.fernet import Fernet\nf = Fernet(Fernet.generate_key())\nopen('a.enc', 'wb').write(f.encrypt(open('a', 'rb').read()))"}
findings contains {"id": "SBX-FS-0015", "at": f.at, "msg": sprintf("files that were listed are encrypted and replaced by %s", [f.by])} if {
	count(input.actions.crypto) > 0
	some listed
	count(input.files.list[listed]) > 0
	some op in {"write", "delete", "move_src"}
	some class
	some f in input.files[op][class]
	not f.folded
}

findings contains {"id": "SBX-FS-0015", "at": c.at, "msg": sprintf("files are encrypted by %s, and the plain ones removed by %s", [name, remover])} if {
	count(input.actions.crypto) > 0
	some name in {"openssl", "gpg", "gpg2", "age", "ccrypt"}
	some c in input.commands[name]
	one_by_one(c)
	not "d" in c.flags
	some remover in removers
}

removers contains remover if {
	some remover in {"rm", "shred", "mv", "unlink"}
	some r in input.commands[remover]
	one_by_one(r)
}

# one_by_one: for each of many files.
one_by_one(c) if {
	some wrapper in {"find", "xargs", "parallel", "fd"}
	wrapper in c.wrappers
}

one_by_one(c) if {
	some block in {"for", "while", "until"}
	block in c.in
}

# METADATA
# title: Locks the owner out of a home directory
# custom:
#   id: SBX-FS-0016
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1222", "T1531"]
#   remediation: "Change files of the workspace only."
#   match:
#     - {"language": "bash", "code": "chmod 000 ~"}
#     - {"language": "bash", "code": "chown -R nobody ~"}
#     - {"language": "python", "code": "import os\nos.chmod(os.path.expanduser('~'), 0)"}
#   not_match:
#     - {"language": "bash", "code": "chmod 755 ~/bin/x"}
#     - {"language": "bash", "code": "chmod -R u+w build"}
findings contains {"id": "SBX-FS-0016", "at": f.at, "msg": sprintf("the permissions of %s are changed by %s", [f.path, f.by])} if {
	some f in input.files.chmod.home
	whole_home(f.path)
}

whole_home(p) if p in {"~", "/home/sandbox", "~/*", "/home/sandbox/*"}

# METADATA
# title: Renames or moves everything of a home directory
# custom:
#   id: SBX-FS-0017
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1486", "T1485"]
#   remediation: "Rename files of the workspace only."
#   match:
#     - {"language": "bash", "code": "for f in ~/*; do mv \"$f\" \"$f.locked\"; done"}
#     - {"language": "python", "code": "import os\nh = os.path.expanduser('~')\nfor n in os.listdir(h):\n    os.rename(h + '/' + n, h + '/' + n + '.locked')"}
#   not_match:
#     - {"language": "bash", "code": "for f in *.txt; do mv \"$f\" \"$f.bak\"; done"}
#     - {"language": "bash", "code": "mv ~/a ~/b"}
findings contains {"id": "SBX-FS-0017", "at": f.at, "msg": sprintf("all that begins with %s is moved by %s", [f.path, f.by])} if {
	some f in input.files.move_src.home
	many(f)
}

many(f) if not f.folded

many(f) if contains(f.path, "*")

# METADATA
# title: Lets a file run with its owner's rights
# custom:
#   id: SBX-FS-0018
#   severity: high
#   category: privilege
#   cwe: ["CWE-732", "CWE-250"]
#   attack: ["T1548.001"]
#   remediation: "Give only the permissions that are needed."
#   match:
#     - {"language": "bash", "code": "chmod 4755 run"}
#     - {"language": "bash", "code": "chmod u+s run"}
#     - {"language": "python", "code": "import os\nos.chmod('run', 0o4755)"}
#     - {"language": "javascript", "code": "require('fs').chmodSync('run', 0o4755)"}
#   not_match:
#     - {"language": "bash", "code": "chmod 755 run"}
#     - {"language": "bash", "code": "chmod g+s shared"}
#     - {"language": "bash", "code": "chmod 1777 tmp"}
findings contains {"id": "SBX-FS-0018", "at": a.at, "msg": sprintf("the mode %s is set", [concat(" ", a.args)])} if {
	some a in input.actions.chmod_mode
	some m in a.args
	as_owner(a.by, m)
}

as_owner(_, m) if regex.match(`^[ua]*\+[rwx]*s`, m)

as_owner(by, m) if {
	octal_by(by)
	regex.match(`^0*[4-7][0-7]{3}$`, m)
}

as_owner(by, m) if {
	not octal_by(by)
	regex.match(`^[0-9]{4}$`, m)
	to_number(m) >= 2048
}

octal_by(by) if by in {"chmod", "install", "mkdir"}

# METADATA
# title: Packs, copies or searches a whole home directory
# custom:
#   id: SBX-FS-0019
#   severity: high
#   category: credentials
#   cwe: ["CWE-200"]
#   attack: ["T1560", "T1005"]
#   remediation: "Pack files of the workspace."
#   match:
#     - {"language": "bash", "code": "tar czf x.tgz ~"}
#     - {"language": "bash", "code": "cp -r ~ backup"}
#     - {"language": "bash", "code": "grep -rE 'AKIA[0-9A-Z]{16}' ~"}
#     - {"language": "python", "code": "import os, shutil\nshutil.make_archive('x', 'zip', os.path.expanduser('~'))"}
#   not_match:
#     - {"language": "bash", "code": "tar czf x.tgz ."}
#     - {"language": "bash", "code": "find ~ -name x"}
#     - {"language": "python", "code": "import os\nos.listdir(os.path.expanduser('~'))"}
findings contains {"id": "SBX-FS-0019", "at": f.at, "msg": sprintf("all of %s is packed or copied by %s", [f.path, f.by])} if {
	some f in input.files.list.home
	whole_home(f.path)
	f.by in {"tar", "zip", "cp", "rsync", "7z", "shutil.make_archive", "shutil.copytree", "tarfile.open.add", "grep", "rg", "ag", "ack"}
}

# METADATA
# title: Overwrites everything in a home directory
# custom:
#   id: SBX-FS-0020
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485", "T1486"]
#   remediation: "Write files of the workspace only."
#   match:
#     - {"language": "python", "code": "import os\nfor d, _, fs in os.walk(os.path.expanduser('~')):\n    for f in fs:\n        open(os.path.join(d, f), 'wb').write(os.urandom(9))"}
#   not_match:
#     - {"language": "python", "code": "import os\nfor d, _, fs in os.walk('.'):\n    for f in fs:\n        open(os.path.join(d, f), 'a').write('x')"}
findings contains {"id": "SBX-FS-0020", "at": f.at, "msg": sprintf("what is listed below %s is changed by %s", [listed, f.by])} if {
	some listed in {l.path | some l in input.files.list.home; whole_home(l.path)}
	some op in {"write", "append", "delete", "chmod"}
	used := input.files[op]
	some class in {"home", "unknown"}
	some f in used[class]
	not f.folded
	object.get(f, "where", "") != "own_process" # test$$ is a name of the program's own
}

# METADATA
# title: Drops a database
# custom:
#   id: SBX-FS-0021
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485"]
#   remediation: "Work on a database file in the workspace."
#   match:
#     - {"language": "bash", "code": "mysql -e 'DROP DATABASE shop'"}
#     - {"language": "bash", "code": "psql -c 'drop table users'"}
#     - {"language": "bash", "code": "redis-cli flushall"}
#     - {"language": "bash", "code": "dropdb shop"}
#     - {"language": "bash", "code": "mongosh prod --eval 'db.dropDatabase()'"}
#     - {"language": "python", "code": "import sqlite3\nc = sqlite3.connect('/var/lib/app.db')\nc.cursor().execute('DELETE FROM users')"}
#     - {"language": "javascript", "code": "const db = require('better-sqlite3')('/srv/app.db')\ndb.exec('DROP TABLE users')"}
#   not_match:
#     - {"language": "bash", "code": "psql -c 'select 1'"}
#     - {"language": "bash", "code": "sqlite3 app.db 'drop table t'"}
#     - {"language": "python", "code": "import sqlite3\nc = sqlite3.connect('app.db')\nc.execute('DROP TABLE t')"}
#     - {"language": "python", "code": "import sqlite3\nc = sqlite3.connect('/srv/app.db')\nc.execute('DELETE FROM t WHERE id = 1')"}
findings contains {"id": "SBX-FS-0021", "at": a.at, "msg": sprintf("data of a server is dropped by %s", [a.by])} if {
	some a in input.actions.drop_data
}

findings contains {"id": "SBX-FS-0021", "at": c.at, "msg": sprintf("data of a server is dropped by %s", [name])} if {
	some name in {"mysql", "mariadb", "psql"}
	some c in input.commands[name]
	some flag, text in c.values
	regex.match(`(?i)\b(drop\s+(database|schema|table)|truncate\s+table|delete\s+from\s+\w+\s*;?\s*$)`, text)
}

findings contains {"id": "SBX-FS-0021", "at": c.at, "msg": sprintf("data of a server is dropped by %s", [name])} if {
	some name in {"mongo", "mongosh"}
	some c in input.commands[name]
	text := c.values["--eval"]
	regex.match(`\bdropDatabase\b|\.drop\(|\.(deleteMany|remove)\(\s*(\{\s*\})?\s*\)`, text)
}

findings contains {"id": "SBX-FS-0021", "at": a.at, "msg": sprintf("data of %s is dropped by %s", [database, a.by])} if {
	some a in input.actions.sql
	some text in a.args
	regex.match(`(?i)\b(drop\s+(database|schema|table)|truncate\s+table|delete\s+from\s+\w+\s*(;|$))`, text)
}

# database is the first of those that are not the workspace's.
database := min({f.path |
	some class in array.concat(data.settings.system_classes, data.settings.outside_classes)
	some f in input.files.read[class]
	f.by in {"sqlite3.connect", "better-sqlite3", "sqlite3.Database", "node:sqlite.DatabaseSync"}
})

# METADATA
# title: Deletes the folder that it works in, or all around it
# custom:
#   id: SBX-FS-0030
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485"]
#   remediation: "Name what is to be deleted."
#   match:
#     - {"language": "bash", "code": "rm -rf \"$(dirname \"$0\")/..\""}
#     - {"language": "bash", "code": "rm -rf \"$PWD\""}
#     - {"language": "python", "code": "import os, shutil\nshutil.rmtree(os.getcwd())"}
#   not_match:
#     - {"language": "bash", "code": "rm -rf \"$(dirname \"$0\")/../build\""}
#     - {"language": "bash", "code": "cd build && rm -rf *"}
findings contains {"id": "SBX-FS-0030", "at": f.at, "msg": sprintf("%s is deleted as a whole by %s", [f.path, f.by])} if {
	some f in input.files.delete.workspace
	f.recursive
	f.folded
	f.path in {"/workspace", "/workspace/*"}
	by_its_path(f)
}

by_its_path(f) if contains(f.by, ".")

by_its_path(f) if f.line in removed_by_path

removed_by_path contains c.line if {
	some c in input.commands.rm
	some w in c.operands
	w in {"/workspace", "/workspace/", "/workspace/*"}
}

# METADATA
# title: Deletes trees that a file names
# custom:
#   id: SBX-FS-0031
#   severity: high
#   category: destructive
#   cwe: ["CWE-73"]
#   attack: ["T1485"]
#   remediation: "Delete paths that stand in the code."
#   match:
#     - {"language": "bash", "code": "xargs -a list rm -rf"}
#     - {"language": "bash", "code": "xargs rm -rf < list"}
#   not_match:
#     - {"language": "bash", "code": "xargs -a list rm -f"}
#     - {"language": "bash", "code": "find . -name '*.o' | xargs rm -rf"}
findings contains {"id": "SBX-FS-0031", "at": f.at, "msg": sprintf("what %s names is deleted by %s", [substring(f.where, 5, -1), f.by])} if {
	some f in input.files.delete.unknown
	f.recursive
	f.by == "rm"
	startswith(f.where, "file:")
	f.path == ""
	f.line in handed_over
}

handed_over contains c.line if {
	some c in input.commands.rm
	"xargs" in c.wrappers
}

# METADATA
# title: Copies itself into other programs
# custom:
#   id: SBX-FS-0032
#   severity: high
#   category: destructive
#   cwe: ["CWE-506"]
#   attack: ["T1080", "T1554"]
#   remediation: "Leave files that are found as they are."
#   match:
#     - {"language": "python", "code": "import glob\nme = open(__file__).read()\nfor f in glob.glob('*.py'):\n    old = open(f).read()\n    open(f, 'w').write(me + old)"}
#     - {"language": "javascript", "code": "const fs = require('fs')\nconst me = fs.readFileSync(__filename, 'utf8')\nfor (const f of fs.readdirSync('.')) fs.writeFileSync(f, me + fs.readFileSync(f, 'utf8'))"}
#     - {"language": "bash", "code": "for f in $(find . -name '*.sh'); do cat \"$0\" >> \"$f\"; done"}
#     - {"language": "bash", "code": "for f in *.sh; do cat \"$0\" \"$f\" > t; mv t \"$f\"; done"}
#   not_match:
#     - {"language": "python", "code": "import os, sys, shutil\nout = sys.argv[1]\nprint(os.listdir(out))\nshutil.copy(__file__, os.path.join(out, 'train.py'))"}
#     - {"language": "python", "code": "import glob\nhead = open('LICENSE').read()\nfor f in glob.glob('*.py'):\n    old = open(f).read()\n    open(f, 'w').write(head + old)"}
#     - {"language": "bash", "code": "ls; sed '1,/^__END__$/d' \"$0\" > \"$(mktemp)\""}
#     - {"language": "bash", "code": "for f in *.sh; do cat header \"$f\" > t; mv t \"$f\"; done"}
findings contains {"id": "SBX-FS-0032", "at": f.at, "msg": sprintf("the program's own text is put into files that it finds, by %s", [f.by])} if {
	some op in {"write", "append"}
	some class
	some f in input.files[op][class]
	"own_text" in f.from
	come_upon(f)
	joined_to(op, f)
}

findings contains {"id": "SBX-FS-0032", "at": f.at, "msg": sprintf("the program's own text is put into files that it finds, by %s", [f.by])} if {
	some class
	some f in input.files.move_dst[class]
	f.line in moved_on
	come_upon(f)
}

# moved_on: there, a file is moved that got the program's own text.
moved_on contains source.line if {
	some between
	some source in input.files.move_src[between]
	[between, source.path] in got_own_text
}

got_own_text contains [class, w.path] if {
	some class
	some w in input.files.write[class]
	"own_text" in w.from
	joined_to("write", w)
	w.folded
}

# come_upon: which file it is, a listing or a pattern says.
come_upon(f) if contains(f.path, "*")

come_upon(f) if {
	not f.folded
	f.path == ""
	object.get(f, "where", "") in {"", "command"}
	some class
	count(input.files.list[class]) > 0
}

come_upon(f) if {
	not f.folded
	f.path in listed_paths
}

listed_paths contains l.path if {
	some class
	some l in input.files.list[class]
}

# joined_to: to what is there already.
joined_to("append", _)

joined_to("write", f) if {
	some source in f.from
	source != "own_text"
	regex.match("^(file|command)", source)
}
