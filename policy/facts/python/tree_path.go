package python

import (
	"strings"

	"github.com/caisson-dev/caisson/policy/facts"
)

// treeHandlers go through folders, and find the files of modules.
func treeHandlers() map[string]handler {
	return map[string]handler{
		"os.walk": (*invocation).walkTree, "os.fwalk": (*invocation).walkTree,
		"glob.glob": (*invocation).globbed, "glob.iglob": (*invocation).globbed,
		"inspect.getsource": (*invocation).source, "inspect.getsourcelines": (*invocation).source,
		"inspect.getfile": (*invocation).sourceFile, "inspect.getsourcefile": (*invocation).sourceFile,
	}
}

// globbed is what a pattern for a place outside the workspace finds: how it
// begins.
func (c *invocation) globbed() *val {
	pattern, ok := pathText(c.get(0, "pathname")).oneText()
	i := strings.IndexAny(pattern, "*?[")
	if !ok || i < 1 || pattern[0] != '/' && pattern[0] != '~' || strings.HasPrefix(pattern, c.it.b.Tables().Workspace) {
		return nil
	}
	c.it.report(c.name, c.arguments, c.self, c.n)
	out := list(kList, []*val{{x: &extra{pre: pattern[:i]}}})
	out.open = true
	return out
}

// walkTree is what os.walk gives for a place outside the workspace: of each
// folder, how its name begins.
func (c *invocation) walkTree() *val {
	top, ok := pathText(c.get(0, "top")).oneText()
	if !ok || top == "" || top[0] != '/' && top[0] != '~' || strings.HasPrefix(top, c.it.b.Tables().Workspace) {
		return nil
	}
	c.it.report(c.name, c.arguments, c.self, c.n)
	below := &val{x: &extra{pre: strings.TrimSuffix(top, "/") + "/"}}
	out := list(kList, []*val{list(kTuple, []*val{below, unknown, unknown})})
	out.open = true
	return out
}

// source is the program's own text, where what is asked about stands in it.
func (c *invocation) source() *val {
	v := c.get(0, "object")
	if v == nil || v.kind != kFunc && v.kind != kClass && !strings.HasPrefix(v.text, "sys.modules") && !strings.HasPrefix(c.it.t.text(c.n), c.it.calledBy(c.n)+"(sys.modules[__name__]") {
		return nil
	}
	return &val{from: []string{facts.FromOwnText}}
}

// calledBy is how a call names what it calls.
func (it *interp) calledBy(n *node) string {
	if f := n.child("function"); f != nil {
		return it.t.text(f)
	}
	return ""
}

// sourceFile is where a module of the system's lies.
func (c *invocation) sourceFile() *val {
	if v := c.get(0, "object"); v != nil && v.kind == kRef {
		if f := c.it.ownFile(v); f != nil {
			return f
		}
	}
	return nil
}

// fromKeys is dict.fromkeys.
func (c *invocation) fromKeys() *val {
	keys, ok := c.it.iterate(c.get(0, "iterable"), c.n)
	if len(keys) == 0 || len(keys) > 4096 {
		return nil
	}
	d := &val{kind: kDict, open: !ok, x: &extra{dict: map[string]*val{}}}
	value := none
	if v := c.get(1, "value"); v != nil {
		value = v
	}
	for _, k := range keys {
		d.put(k, value)
	}
	return d
}

// standard are modules that come with Python, beside those that the tables name.
var standard = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(`abc argparse array ast asyncio base64 binascii bisect calendar cmath cmd codecs collections
		concurrent configparser contextlib copy csv curses dataclasses datetime decimal difflib dis email encodings enum errno
		fileinput fnmatch fractions functools gettext getpass glob gzip hashlib heapq hmac html http imaplib inspect io ipaddress
		itertools json keyword linecache locale logging lzma math mimetypes multiprocessing numbers operator optparse os pathlib
		platform plistlib pprint queue random re reprlib sched secrets select selectors shelve shlex shutil signal site smtplib
		socketserver sqlite3 ssl stat statistics string stringprep struct sysconfig tarfile tempfile textwrap threading time timeit
		token tokenize trace traceback types typing unicodedata unittest urllib uuid venv warnings wave weakref webbrowser xml xmlrpc
		zipfile zipimport zlib zoneinfo`) {
		out[name] = true
	}
	return out
}()

// starred are names that modules have, beside functions and classes, for those
// who import all of one.
var starred = map[string]bool{
	"ctypes.cdll": true, "ctypes.pydll": true, "ctypes.windll": true, "ctypes.pythonapi": true,
}
