# METADATA
# scope: package
# title: Rules about surveillance
package caisson.rules.surveillance

# METADATA
# title: Watches the screen, keys, clipboard, camera or microphone
# custom:
#   id: SBX-SUR-0001
#   severity: high
#   category: surveillance
#   cwe: ["CWE-359"]
#   attack: ["T1113", "T1056.001", "T1115", "T1125", "T1123"]
#   remediation: "A sandbox has no screen and no keyboard."
#   match:
#     - {"language": "python", "code": "import pyautogui\npyautogui.screenshot()"}
#     - {"language": "bash", "code": "scrot x.png"}
#     - {"language": "bash", "code": "xsel -b > x"}
#     - {"language": "bash", "code": "xsel -io > x"}
#     - {"language": "python", "code": "from gi.repository import Gtk, Gdk\nc = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)\nprint(c.wait_for_text())"}
#     - {"language": "python", "code": "from gi.repository import Gtk, Gdk\nclass A:\n    def __init__(self, make):\n        self.clip = make()\n    def go(self, *a):\n        self.clip.request_text(print)\nA(lambda: Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)).go()"}
#   not_match:
#     - {"language": "bash", "code": "echo hello | xsel -ib"}
#     - {"language": "python", "code": "from gi.repository import Gtk, Gdk\nc = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)\nc.set_text('x', -1)\nc.store()"}
#     - {"language": "python", "code": "from gi.repository import Gtk, Gdk\nclass W(Gtk.Window):\n    def paste(self, *a):\n        return Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD).wait_for_text()"}
#     - {"language": "bash", "code": "ls"}
findings contains {"id": "SBX-SUR-0001", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["screen", "keys", "clipboard", "camera", "microphone"]
	some a in input.actions[op]
	not offered(a)
}

# offered: what a program of windows offers to do with the clipboard, where
# nothing in the text does it: a menu's command, which its user gives.
offered(a) if {
	a.op == "clipboard"
	a.detail == "Gtk.Clipboard"
	a.idle
}

# METADATA
# title: Watches what the machine does
# custom:
#   id: SBX-SUR-0002
#   severity: high
#   category: surveillance
#   cwe: ["CWE-200"]
#   attack: ["T1082", "T1496"]
#   remediation: "caisson reports what a run uses."
#   match:
#     - {"language": "python", "code": "import psutil\npsutil.cpu_percent()"}
#     - {"language": "python", "code": "import psutil\nfor p in psutil.process_iter():\n    p.kill()"}
#     - {"language": "bash", "code": "top -b"}
#     - {"language": "python", "code": "import os\nfor p in os.listdir('/proc'):\n    if p.isdigit():\n        print(p, open(f'/proc/{p}/comm').read())"}
#     - {"language": "javascript", "code": "console.log(require('fs').readdirSync('/proc').filter(d => !isNaN(d)))"}
#   not_match:
#     - {"language": "python", "code": "import psutil\ndef f():\n    return psutil.cpu_percent()"}
#     - {"language": "python", "code": "import time\ntime.time()"}
#     - {"language": "python", "code": "import os\nprint(len(os.listdir('/proc/self/fd')))"}
findings contains {"id": "SBX-SUR-0002", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["host_watch"]
	some a in input.actions[op]
	not a.idle
}

# Who lists /proc lists all processes.
findings contains {"id": "SBX-SUR-0002", "at": f.at, "msg": sprintf("processes are listed by %s", [f.by])} if {
	some f in input.files.list.proc
	f.path == "/proc"
	input.meta.lang != "bash"
	not f.idle
}

# METADATA
# title: Would look at the machine or the clipboard, in a function that nothing calls
# custom:
#   id: SBX-SUR-0003
#   severity: medium
#   category: surveillance
#   cwe: ["CWE-200"]
#   attack: ["T1082"]
#   remediation: "caisson reports what a run uses."
#   match:
#     - {"language": "python", "code": "import psutil\ndef f():\n    return psutil.cpu_percent()"}
#     - {"language": "python", "code": "import os\ndef f():\n    return 0 in os.getgroups()"}
#     - {"language": "python", "code": "import os\ndef f():\n    return os.listdir('/etc')"}
#   not_match:
#     - {"language": "python", "code": "import psutil\nprint(psutil.cpu_percent())"}
findings contains {"id": "SBX-SUR-0003", "at": a.at, "msg": sprintf("%s", [concat(" ", [a.op, a.detail, a.by])])} if {
	some op in ["host_watch", "rights", "connections"]
	some a in input.actions[op]
	a.idle
}

findings contains {"id": "SBX-SUR-0003", "at": a.at, "msg": sprintf("the clipboard would be read by %s", [a.by])} if {
	some a in input.actions.clipboard
	offered(a)
}

findings contains {"id": "SBX-SUR-0003", "at": f.at, "msg": sprintf("%s would be listed by %s", [f.path, f.by])} if {
	some class in data.settings.listed_classes
	some f in input.files.list[class]
	f.idle
}
