# METADATA
# scope: package
# title: Rules about files
package caisson.rules.files

import data.caisson.rules.persistence

# METADATA
# title: Deletes a file outside the workspace
# custom:
#   id: SBX-FS-0001
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485", "T1070.004"]
#   remediation: "Delete files under the workspace only."
#   match:
#     - {"language": "bash", "code": "rm /etc/hosts"}
#     - {"language": "bash", "code": "rm -rf \"$EMPTY\"/"}
#     - {"language": "bash", "code": "find build /etc -name x -delete"}
#     - {"language": "bash", "code": "find / -type f -print0 | xargs -0 rm"}
#     - {"language": "python", "code": "import os\nfor root, _, names in os.walk('/usr'):\n    for n in names:\n        os.remove(os.path.join(root, n))"}
#     - {"language": "python", "code": "import os\nos.remove('/etc/passwd')"}
#     - {"language": "bash", "code": "rm -rf /usr/lib/python3/__pycache__"}
#     - {"language": "javascript", "code": "require('fs').unlinkSync('/etc/hosts')"}
#   not_match:
#     - {"language": "bash", "code": "rm build/x.o"}
#     - {"language": "bash", "code": "find . -name '*.pyc' | xargs rm"}
#     - {"language": "bash", "code": "rm -rf \"$1\"/*"}
#     - {"language": "bash", "code": "rm -rf \"$OUT/obj\""}
#     - {"language": "python", "code": "import importlib.util, os\nos.remove(importlib.util.cache_from_source('/etc/tool/settings.py'))"}
#     - {"language": "python", "code": "import os\nos.remove('out.txt')"}
findings contains {"id": "SBX-FS-0001", "at": f.at, "msg": sprintf("%s is deleted by %s", [f.path, f.by])} if {
	some op in {"delete", "move_src"}
	used := input.files[op]
	some class in data.settings.system_classes
	some f in used[class]
	not runtime(f)
	not uninstalled(f)
	not bytecode(f)
}

# bytecode: what Python keeps of a module, and makes anew.
bytecode(f) if {
	f.op == "delete"
	not f.recursive
	regex.match(`^/([^*?\[]+/)?__pycache__(/[^/*?\[]+\.pyc)?$`, f.path)
}

# uninstalled: one file that is there by an installation.
uninstalled(f) if {
	not f.recursive
	installed(f)
	regex.match(`^/(usr/local|opt)/[^/*?\[]+/[^*?\[]+$`, f.path)
}

findings contains {"id": "SBX-FS-0001", "at": f.at, "msg": sprintf("what is deleted by %s is / where a variable is not set", [f.by])} if {
	some f in input.files.delete.unknown
	f.recursive
	f.path == "/"
	not given(f)
}

findings contains {"id": "SBX-FS-0001", "at": f.at, "msg": sprintf("what is listed of the system is deleted by %s", [f.by])} if {
	some f in input.files.delete.unknown
	listed_there(f)
}

# listed_there: a path begins as a folder that is listed does, or is what a
# program on that line prints.
listed_there(f) if f.path in listed_paths

listed_there(f) if {
	some path in listed_paths
	path != "/"
	startswith(f.path, sprintf("%s/", [path]))
}

listed_there(f) if {
	f.where == "command"
	f.line in listed_lines
}

listed_paths contains l.path if some l in listed_all

listed_lines contains l.line if some l in listed_all

listed_all contains l if {
	some class in data.settings.system_classes
	some l in input.files.list[class]
}

given(f) if f.where == "argv"

given(f) if f.where == "param"

# METADATA
# title: Deletes a tree of the home directory or one outside the workspace
# custom:
#   id: SBX-FS-0002
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485"]
#   remediation: "Delete files under the workspace only."
#   match:
#     - {"language": "bash", "code": "rm -rf ~"}
#     - {"language": "bash", "code": "rm -rf /data"}
#   not_match:
#     - {"language": "bash", "code": "rm -rf node_modules"}
#     - {"language": "bash", "code": "echo x > ~/note; rm ~/note"}
findings contains {"id": "SBX-FS-0002", "at": f.at, "msg": sprintf("%s is deleted by %s", [f.path, f.by])} if {
	some op in {"delete"}
	used := input.files[op]
	some class in {"home", "outside", "other_home", "block_device", "persistence"}
	some f in used[class]
	not own_file(f)
	not beside(f)
	not state(f)
	not bytecode(f)
}

# own_file: what lies in a folder that the program itself made there.
own_file(f) if {
	parts := split(f.path, "/")
	some n in numbers.range(1, min([count(parts), deepest]))
	concat("/", array.slice(parts, 0, n)) in own_folders
}

# own_file: a cache, or what the program itself made.
own_file(f) if {
	not f.recursive
	regex.match(`^(~|/home/sandbox)/\.cache/.`, f.path)
}

own_file(f) if {
	f.folded
	not whole_home(f.path)
	f.path in own_paths
}

own_folders contains m.path if {
	some m in input.files.mkdir.home
	not whole_home(m.path)
}

own_paths contains w.path if {
	some op in {"write", "append", "copy_dst", "mkdir"}
	some w in input.files[op].home
}

# deepest is how far down a folder is looked for that a path is in.
deepest := 32

# METADATA
# title: Writes to a place of the system
# custom:
#   id: SBX-FS-0003
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1565"]
#   remediation: "Write under the workspace or /tmp."
#   match:
#     - {"language": "bash", "code": "echo x > /etc/hosts"}
#     - {"language": "python", "code": "open('/usr/bin/x','w')"}
#     - {"language": "javascript", "code": "require('fs').writeFileSync('/etc/hosts','x')"}
#     - {"language": "bash", "code": "cp tool /usr/local/bin/sudo"}
#     - {"language": "bash", "code": "cp ls /usr/local/bin"}
#     - {"language": "bash", "code": "ln -s tool /usr/bin/tool"}
#     - {"language": "bash", "code": "ln -s -t /usr/bin /opt/x"}
#     - {"language": "bash", "code": "ln -s /usr/bin/ls /usr/bin/rm"}
#     - {"language": "bash", "code": "cd /usr/bin && ln -s /opt/x y"}
#     - {"language": "python", "code": "import os\nos.symlink('tool', '/usr/bin/tool')"}
#     - {"language": "python", "code": "import os\nos.symlink('/usr/bin/ls', '/usr/bin/rm')"}
#     - {"language": "python", "code": "from pathlib import Path\nPath('/usr/bin/rm').symlink_to('/usr/bin/ls')"}
#     - {"language": "python", "code": "import os\nos.symlink('/etc/hosts', 'x')"}
#     - {"language": "python", "code": "import os\nos.symlink('/usr/bin', 'x')\nopen('x/ls', 'w')"}
#   not_match:
#     - {"language": "bash", "code": "ln -s /usr/share/x/y.cgi site/y.cgi"}
#     - {"language": "python", "code": "import os\nos.symlink('/usr/share/x/y.css', os.path.join('site', 'y.css'))"}
#     - {"language": "python", "code": "from pathlib import Path\n(Path('bin') / 'pandoc').symlink_to('/usr/bin/pandoc')"}
#     - {"language": "python", "code": "open('out.csv','w')"}
#     - {"language": "bash", "code": "echo x > /tmp/x"}
#     - {"language": "bash", "code": "install -m 755 tool /usr/local/bin/tool"}
#     - {"language": "bash", "code": "echo $$ > /var/run/app.pid"}
findings contains {"id": "SBX-FS-0003", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in {"write", "append", "copy_dst", "move_dst", "chmod", "link", "mkdir", "mount"}
	used := input.files[op]
	some class in data.settings.system_classes
	some f in used[class]
	not result(f)
	not installed(f)
	not runtime(f)
	not made(f)
	not pointed_at(f)
}

# pointed_at: a program or data of the system that a link elsewhere names.
pointed_at(f) if {
	f.op == "link"
	f.class in {"system_binary", "public"}
	[f.by, f.line, f.path] in linked
}

linked contains [name, c.line, word] if {
	some name in {f.by | some f in input.files.link[_]}
	some c in input.commands[name]
	not "t" in c.flags
	not "target-directory" in c.flags
	n := count(c.operands) - 1
	some i, word in c.operands
	i < n
	c.operands[n] != word
}

pointed_at(f) if {
	f.op == "link"
	f.class in {"system_binary", "public"}
	f.mode == "target"
	regex.match(`^/[^/]+/[^/]+/.`, f.path) # what is written through a link to /usr/bin lies there
}

# result: a file where data is mounted by habit.
result(f) if {
	f.op in {"write", "append", "mkdir", "copy_dst"}
	data_place(f.path)
}

# METADATA
# title: Writes outside the workspace
# custom:
#   id: SBX-FS-0004
#   severity: high
#   category: destructive
#   cwe: ["CWE-22"]
#   attack: ["T1565"]
#   remediation: "Write under the workspace or /tmp."
#   match:
#     - {"language": "bash", "code": "echo x > /srv2/x"}
#   not_match:
#     - {"language": "bash", "code": "echo x > data/x"}
#     - {"language": "bash", "code": "echo x > /output/x"}
findings contains {"id": "SBX-FS-0004", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in {"write", "append", "copy_dst", "move_dst", "chmod", "link", "mkdir", "mount"}
	used := input.files[op]
	some class in data.settings.outside_classes
	some f in used[class]
	not result(f)
	not beside(f)
	not foreign(f)
	not made(f)
}

# foreign: a home of a system that the sandbox's is none of.
foreign(f) if {
	f.class == "other_home"
	regex.match(`^/Users/[^/*?\[]+/[^*?\[]+$`, f.path)
}

# beside: a folder next to the workspace, as a project's other parts are that a
# program in one of its folders names by "..".
beside(f) if {
	f.class == "outside"
	f.traversal
}

# METADATA
# title: Opens a raw device
# custom:
#   id: SBX-FS-0005
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1006"]
#   remediation: "Work on files."
#   match:
#     - {"language": "bash", "code": "dd if=/dev/sda of=disk.img"}
#     - {"language": "python", "code": "open('/dev/mem','rb')"}
#   not_match:
#     - {"language": "bash", "code": "head -c 4 /dev/urandom"}
findings contains {"id": "SBX-FS-0005", "at": f.at, "msg": sprintf("%s is opened by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "write", "append", "chmod"}
	used := input.files[op]
	some class in {"block_device", "kernel_memory", "input_device"}
	some f in used[class]
}

# METADATA
# title: Lists a directory of the system
# custom:
#   id: SBX-FS-0006
#   severity: high
#   category: reconnaissance
#   cwe: ["CWE-548"]
#   attack: ["T1083"]
#   remediation: "List the workspace only."
#   match:
#     - {"language": "bash", "code": "ls -la /etc"}
#     - {"language": "python", "code": "import os\nos.listdir('/root')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/bin/*')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/usr/lib/*.so')"}
#     - {"language": "python", "code": "import os\nos.listdir('/Applications')"}
#     - {"language": "javascript", "code": "require('fs').readdirSync('/etc')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/etc/*')"}
#     - {"language": "bash", "code": "ls /etc/ssh"}
#     - {"language": "bash", "code": "ls -d /etc/*"}
#     - {"language": "bash", "code": "ls /var/lib"}
#     - {"language": "bash", "code": "tar cf x.tar /var/lib/tool"}
#     - {"language": "bash", "code": "cp -r /var/lib/tool ."}
#     - {"language": "bash", "code": "find /var/lib/tool -exec cp {} . ;"}
#     - {"language": "bash", "code": "ls /usr/bin/*"}
#     - {"language": "bash", "code": "ls -d /; ls /etc"}
#     - {"language": "bash", "code": "ls ../.."}
#     - {"language": "bash", "code": "find /usr -perm -4000"}
#     - {"language": "bash", "code": "find / -name id_rsa"}
#     - {"language": "bash", "code": "find /usr -name '*'"}
#     - {"language": "bash", "code": "find /usr /etc -name shadow"}
#     - {"language": "bash", "code": "find . /etc"}
#     - {"language": "python", "code": "import os\nos.listdir('/etc/apt')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/usr/bin/py*')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/etc/shad*')"}
#     - {"language": "python", "code": "import os\ndef f():\n    return os.listdir('/etc')\nprint(f())"}
#   not_match:
#     - {"language": "bash", "code": "ls -la"}
#     - {"language": "python", "code": "import os\nos.listdir('.')"}
#     - {"language": "bash", "code": "find . -name x"}
#     - {"language": "bash", "code": "ls /usr/lib/jvm"}
#     - {"language": "bash", "code": "ls /var/lib/tool/dump/*.pgp"}
#     - {"language": "bash", "code": "ls /usr/bin/python3.*"}
#     - {"language": "bash", "code": "set x `ls -l -d /`"}
#     - {"language": "bash", "code": "ls -l ../../version.txt"}
#     - {"language": "bash", "code": "find /usr -type f -name libssl.so -print -quit"}
#     - {"language": "python", "code": "import os\nos.listdir('/data/images')"}
#     - {"language": "python", "code": "import os\nos.listdir('/Library/Fonts')"}
#     - {"language": "python", "code": "import os\nos.listdir('/Applications/Tool.app/Contents')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/usr/lib/*-gnu*')"}
#     - {"language": "python", "code": "import glob\nglob.glob('/usr/bin/python3.[0-9]')"}
#     - {"language": "python", "code": "import os\ndef f():\n    return os.listdir('/etc')"}
findings contains {"id": "SBX-FS-0006", "at": f.at, "msg": sprintf("%s is listed by %s", [f.path, f.by])} if {
	some op in {"list"}
	used := input.files[op]
	some class in data.settings.listed_classes
	some f in used[class]
	not f.idle
	not data_place(f.path)
	not guessed(f)
	not part(f)
	not beside(f)
	not itself(f)
	not sought(f)
	not aimed(f)
}

# aimed: versions of one program, or of one file, are looked for by how its
# name begins.
aimed(f) if {
	f.class in {"system_binary", "boot"}
	regex.match(`^(/[^*?\[/]+)+/[A-Za-z0-9_+.-]{4,}[*?\[][^/]*$`, f.path)
}

# aimed: libraries, by some of their names.
aimed(f) if {
	f.class == "system_binary"
	regex.match(`^/(usr/)?(local/)?lib(32|64)?/[^/]*[A-Za-z0-9_.+-]{4}`, f.path)
}

# itself: a folder is shown as one entry, and not what is in it.
itself(f) if {
	f.by in {"ls", "dir", "vdir"}
	not regex.match(`[*?\[]`, f.path)
	[f.by, f.spot] in naming
	not [f.by, f.spot] in listing
}

naming contains [name, c.spot] if {
	some name in {"ls", "dir", "vdir"}
	some c in input.commands[name]
	"d" in c.flags
}

listing contains [name, c.spot] if {
	some name in {"ls", "dir", "vdir"}
	some c in input.commands[name]
	not "d" in c.flags
}

# sought: a file of an installed program is looked for by its name.
sought(f) if {
	f.by == "find"
	f.class == "system_binary"
	f.spot in seeking
	not f.spot in searching
}

seeking contains c.spot if {
	some c in input.commands.find
	named(c)
}

searching contains c.spot if {
	some c in input.commands.find
	not named(c)
}

named(c) if {
	count(c.operands) == 1
	some flag in {"-name", "-iname"}
	regex.match(`^[A-Za-z0-9_.+-]*[A-Za-z0-9_]{3}`, c.values[flag])
}

# part: a folder of one library or program.
part(f) if {
	f.class == "system_binary"
	regex.match(`^/((usr/)?(local/)?(lib|lib64|libexec|include|src)|opt)/[^*?\[/]`, f.path)
}

# part: what one program keeps for itself, where it is looked at and not copied.
part(f) if {
	f.class in {"system_state", "system_binary"}
	f.by in {"ls", "dir", "vdir", "os.listdir", "os.scandir", "glob.glob", "glob.iglob", "fs.readdirSync", "fs.readdir", "fs.promises.readdir"}
	not f.traversal
	not f.recursive
	regex.match(`^/var/(lib|cache)/[^/*?\[]{3,}|^/(usr/)?(local/)?s?bin/[A-Za-z][A-Za-z0-9_-]{2}[^/]*$`, f.path)
}

# part: folders of another system than the sandbox's.
part(f) if {
	f.class in {"system_binary", "outside"}
	regex.match(`^/(Library|System|Applications|usr/java)/[^*?\[/]`, f.path)
}

# guessed: a folder outside that may as well be another.
guessed(f) if {
	f.class == "outside"
	not f.folded
}

data_place(path) if path in data.settings.data_places

data_place(path) if strings.any_prefix_match(path, data_folders)

data_folders := {sprintf("%s/", [place]) | some place in data.settings.data_places}

# METADATA
# title: Reads configuration of the system
# custom:
#   id: SBX-FS-0007
#   severity: medium
#   category: reconnaissance
#   cwe: ["CWE-200"]
#   attack: ["T1082"]
#   remediation: "Pass what the program needs as an argument."
#   match:
#     - {"language": "bash", "code": "cat /etc/fstab"}
#   not_match:
#     - {"language": "bash", "code": "cat README.md"}
findings contains {"id": "SBX-FS-0007", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "exec"}
	used := input.files[op]
	some class in data.settings.noted_classes
	some f in used[class]
	class != "home"
}

findings contains {"id": "SBX-FS-0007", "at": f.at, "msg": sprintf("%s of another system is used by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "exec", "write", "append", "copy_dst", "mkdir"}
	some f in input.files[op].other_home
	foreign(f)
}

# METADATA
# title: Reads a guarded place
# custom:
#   id: SBX-FS-0008
#   severity: high
#   category: reconnaissance
#   cwe: ["CWE-200"]
#   attack: ["T1082"]
#   remediation: "Read the workspace only."
#   match:
#     - {"language": "bash", "code": "cat /etc/pam.d/sshd"}
#     - {"language": "bash", "code": "cat /etc/ssh/sshd_config"}
#     - {"language": "bash", "code": "cat /home/ann/notes /root/x"}
#   not_match:
#     - {"language": "bash", "code": "cat /Users/ann/src/app/strings.properties"}
#     - {"language": "bash", "code": "cat README.md"}
findings contains {"id": "SBX-FS-0008", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "exec"}
	used := input.files[op]
	some class in data.settings.guarded_classes
	some f in used[class]
	not program(op, class)
	not foreign(f)
}

# program: a program of another home is run, not read.
program("exec", "other_home")

# METADATA
# title: Leaves the workspace by ..
# custom:
#   id: SBX-FS-0009
#   severity: medium
#   category: evasion
#   cwe: ["CWE-22"]
#   attack: ["T1083"]
#   remediation: "Name paths within the workspace."
#   match:
#     - {"language": "python", "code": "open('../../../srv/x')"}
#   not_match:
#     - {"language": "python", "code": "open('a/../b')"}
findings contains {"id": "SBX-FS-0009", "at": f.at, "msg": sprintf("%s is reached through .. by %s", [f.path, f.by])} if {
	some op in {"read", "write", "append", "delete", "copy_src", "copy_dst", "move_src", "move_dst", "chmod", "link", "mkdir"}
	used := input.files[op]
	some class in {"outside", "other_home", "system_state"}
	some f in used[class]
	f.traversal
}

# METADATA
# title: Deletes a path that could not be told
# custom:
#   id: SBX-FS-0010
#   severity: medium
#   category: destructive
#   cwe: ["CWE-73"]
#   attack: ["T1485"]
#   remediation: "Delete paths that stand in the code."
#   match:
#     - {"language": "bash", "code": "rm -rf \"$1\""}
#   not_match:
#     - {"language": "bash", "code": "rm -rf build"}
findings contains {"id": "SBX-FS-0010", "at": f.at, "msg": sprintf("a path that begins with %q is deleted by %s", [f.path, f.by])} if {
	some op in {"delete"}
	used := input.files[op]
	some class in {"unknown"}
	some f in used[class]
}

# METADATA
# title: Makes files open to everybody, or run as their owner
# custom:
#   id: SBX-FS-0011
#   severity: medium
#   category: privilege
#   cwe: ["CWE-732"]
#   attack: ["T1222"]
#   remediation: "Give only the permissions that are needed."
#   match:
#     - {"language": "bash", "code": "chmod 777 run.sh"}
#     - {"language": "bash", "code": "chmod u+s x"}
#   not_match:
#     - {"language": "bash", "code": "chmod 644 a"}
#     - {"language": "bash", "code": "chmod +x run.sh"}
findings contains {"id": "SBX-FS-0011", "at": a.at, "msg": sprintf("the mode %s is set", [concat(" ", a.args)])} if {
	some a in input.actions.chmod_mode
	some m in a.args
	open_mode(m)
}

open_mode(m) if regex.match(`^0?o?[0-7]?[0-7][0-7][2367]$`, m)

open_mode(m) if regex.match(`^0?o?[2467][0-7]{3}$`, m)

open_mode(m) if regex.match(`^[augo]*\+[rwx]*s`, m)

open_mode("511")

open_mode("438")

# METADATA
# title: Deletes everything in the workspace
# custom:
#   id: SBX-FS-0012
#   severity: high
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485"]
#   remediation: "Name what is to be deleted."
#   match:
#     - {"language": "bash", "code": "rm -rf *"}
#     - {"language": "bash", "code": "rm -rf ."}
#     - {"language": "bash", "code": "find . -name '*' -delete"}
#     - {"language": "python", "code": "import shutil\nshutil.rmtree('/workspace')"}
#   not_match:
#     - {"language": "bash", "code": "rm -rf dist"}
#     - {"language": "bash", "code": "find . -name __pycache__ -exec rm -rf {} +"}
#     - {"language": "bash", "code": "git clean -fdx"}
findings contains {"id": "SBX-FS-0012", "at": f.at, "msg": sprintf("%s is deleted as a whole by %s", [f.path, f.by])} if {
	some op in {"delete"}
	used := input.files[op]
	some class in {"workspace"}
	some f in used[class]
	f.recursive
	f.folded
	f.path in {"/workspace", "/workspace/*"}
	f.by != "git" # its clean leaves what it knows
}

# METADATA
# title: Reads a file outside the workspace
# custom:
#   id: SBX-FS-0013
#   severity: medium
#   category: reconnaissance
#   cwe: ["CWE-22"]
#   attack: ["T1083"]
#   remediation: "Read the workspace only."
#   match:
#     - {"language": "bash", "code": "cat /data/x"}
#     - {"language": "bash", "code": "echo x > /output/x"}
#   not_match:
#     - {"language": "bash", "code": "cat data/x"}
findings contains {"id": "SBX-FS-0013", "at": f.at, "msg": sprintf("%s is read by %s", [f.path, f.by])} if {
	some op in {"read", "copy_src", "move_src", "exec"}
	used := input.files[op]
	some class in {"outside", "system_state", "runtime", "device"}
	some f in used[class]
}

findings contains {"id": "SBX-FS-0013", "at": f.at, "msg": sprintf("%s is written by %s", [f.path, f.by])} if {
	some op in {"write", "append", "mkdir", "copy_dst"}
	used := input.files[op]
	some class in {"outside", "system_state"}
	some f in used[class]
	result(f)
}

findings contains {"id": "SBX-FS-0013", "at": f.at, "msg": sprintf("%s is listed by %s", [f.path, f.by])} if {
	some class in {"outside", "system_state"}
	some f in input.files.list[class]
	data_place(f.path)
}

# METADATA
# title: Touches the container engine's socket
# custom:
#   id: SBX-FS-0014
#   severity: critical
#   category: container
#   cwe: ["CWE-250"]
#   attack: ["T1611"]
#   remediation: "A sandbox has no use for the engine."
#   match:
#     - {"language": "bash", "code": "curl --unix-socket /var/run/docker.sock http://x/containers/json"}
#   not_match:
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-FS-0014", "at": f.at, "msg": sprintf("%s by %s", [f.path, f.by])} if {
	some op
	some f in input.files[op].container_socket
}

findings contains {"id": "SBX-FS-0014", "at": n.at, "msg": sprintf("%s by %s", [n.url, n.by])} if {
	some op
	some n in input.net.unix[op]
	regex.match(`(docker|containerd|podman|crio)\.sock`, n.url)
}

# METADATA
# title: Installs below /usr/local or /opt
# custom:
#   id: SBX-FS-0022
#   severity: medium
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1565"]
#   remediation: "Install into a folder of the workspace: PREFIX=$PWD/out."
#   match:
#     - {"language": "bash", "code": "install -m 755 tool /usr/local/bin/tool"}
#     - {"language": "bash", "code": "mkdir -p \"${PREFIX:-/usr/local}/bin\""}
#     - {"language": "bash", "code": "rm -f /usr/local/bin/tool"}
#   not_match:
#     - {"language": "bash", "code": "install -m 755 tool bin/tool"}
#     - {"language": "bash", "code": "rm -rf /usr/local/bin"}
#     - {"language": "bash", "code": "cp tool /usr/local/bin/sudo"}
findings contains {"id": "SBX-FS-0022", "at": f.at, "msg": sprintf("%s: %s by %s", [f.op, f.path, f.by])} if {
	some op in {"write", "append", "copy_dst", "move_dst", "chmod", "link", "mkdir", "delete", "move_src"}
	some class in {"system_binary", "system_config", "public"}
	some f in input.files[op][class]
	installed(f)
	seen(f)
}

seen(f) if not f.op in {"delete", "move_src"}

seen(f) if uninstalled(f)

# installed: where software goes that is not of the system, under a name that
# stands for none of the system's programs.
installed(f) if {
	f.class in {"system_binary", "system_config", "public"}
	f.op != "mount"
	regex.match(`^/(usr/local|opt)(/|$)`, f.path)
	not passes_for(f)
}

# passes_for: programs are looked for in /usr/local/bin before /usr/bin.
passes_for(f) if common_program(f.path)

passes_for(f) if [f.by, f.line] in passing

passing contains [name, c.line] if {
	some name, list in input.commands
	some c in list
	some word in c.operands
	common_program(word)
}

common_program(path) if {
	parts := split(path, "/")
	parts[count(parts) - 1] in persistence.common_programs
}

# METADATA
# title: Writes or deletes files of running programs
# custom:
#   id: SBX-FS-0023
#   severity: medium
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1489"]
#   remediation: "Keep such files under the workspace or /tmp."
#   match:
#     - {"language": "bash", "code": "echo $$ > /var/run/app.pid"}
#     - {"language": "bash", "code": "rm -f /run/app/app.sock"}
#   not_match:
#     - {"language": "bash", "code": "echo $$ > /tmp/app.pid"}
#     - {"language": "bash", "code": "rm -rf /run/*"}
findings contains {"id": "SBX-FS-0023", "at": f.at, "msg": sprintf("%s: %s by %s", [f.op, f.path, f.by])} if {
	some op
	some f in input.files[op].runtime
	runtime(f)
}

# runtime: one file of those in /run, or a folder of one program's.
runtime(f) if {
	f.class == "runtime"
	f.op in {"write", "append", "copy_dst", "move_dst", "chmod", "mkdir", "delete", "move_src"}
	not f.recursive
	regex.match(`^(/var)?/(run|lock)/[^*?\[]+$`, f.path)
}

# METADATA
# title: Deletes state of a program in the home directory
# custom:
#   id: SBX-FS-0024
#   severity: medium
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1485"]
#   remediation: "Keep what a program makes under the workspace or /tmp."
#   match:
#     - {"language": "bash", "code": "rm -rf ~/.pyenv/versions/3.9.18"}
#   not_match:
#     - {"language": "bash", "code": "rm -rf ~/.config/app"}
#     - {"language": "bash", "code": "rm -rf ~/Documents/x"}
findings contains {"id": "SBX-FS-0024", "at": f.at, "msg": sprintf("%s is deleted by %s", [f.path, f.by])} if {
	some f in input.files.delete.home
	state(f)
	not own_file(f)
}

# state: something in a tool's own folder, and not the folder.
state(f) if {
	f.class == "home"
	regex.match(`^/home/sandbox/\.[a-z][^/*?\[]*/[^/*?\[]+`, f.path)
	not regex.match(`^/home/sandbox/\.(config|local|git|vscode|var|thunderbird|mozilla|wallet)[^/]*/`, f.path)
}

# METADATA
# title: Makes a folder in a place of the system
# custom:
#   id: SBX-FS-0025
#   severity: medium
#   category: destructive
#   cwe: ["CWE-732"]
#   attack: ["T1565"]
#   remediation: "Make folders under the workspace or /tmp."
#   match:
#     - {"language": "bash", "code": "mkdir -p /etc/app"}
#     - {"language": "bash", "code": "mkdir -p /var/lib/app"}
#     - {"language": "bash", "code": "mkdir -p /srv2/x"}
#     - {"language": "python", "code": "import os\nos.makedirs(os.path.expanduser('~/.aws/tool/cache'))"}
#   not_match:
#     - {"language": "bash", "code": "mkdir -p ~/.ssh"}
#     - {"language": "bash", "code": "mknod /etc/x b 8 0"}
#     - {"language": "bash", "code": "mkdir -p /etc/cron.d/x"}
findings contains {"id": "SBX-FS-0025", "at": f.at, "msg": sprintf("%s is made by %s", [f.path, f.by])} if {
	some class
	some f in input.files.mkdir[class]
	made(f)
	not runtime(f)
	not installed(f)
}

# made: a folder, which takes nothing away and says nothing.
made(f) if {
	f.op == "mkdir"
	f.class in {"root", "outside", "system_binary", "system_config", "system_state", "public", "log"}
	not pipe(f)
}

# made: a folder within a tool's own folder, where keys lie beside it.
made(f) if {
	f.op == "mkdir"
	f.class == "credential"
	not pipe(f)
	regex.match(`^/home/sandbox/\.[a-z][^/*?\[]*/[^/*?\[]+/[^*?\[]+$`, f.path)
}

pipe(f) if f.by in {"mknod", "mkfifo", "os.mknod", "os.mkfifo"}
