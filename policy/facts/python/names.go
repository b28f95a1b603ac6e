package python

import "strings"

// canonical gives a dotted name the spelling that tables and rules use: one
// name for modules that are the same under two, and the module itself where it
// is reached through another that merely imports it (shutil.os is os).
func canonical(name string) string {
	if name == "" || name[0] == '.' || name[0] == '?' {
		return name
	}
	name = strings.TrimPrefix(name, "six.moves.")
	root, rest, dotted := strings.Cut(name, ".")
	switch root {
	case "builtins", "__builtin__", "__builtins__":
		if !dotted {
			return "builtins"
		}
		root, rest, dotted = strings.Cut(rest, ".")
	case "io", "_io", "_pyio":
		if rest == "open" || rest == "FileIO" {
			return "open"
		}
	}
	if r, ok := sameModule[root]; ok {
		root = r
	}
	if !dotted {
		return root
	}
	if inner, ok := reexported(root, rest); ok {
		return canonical(inner)
	}
	full := root + "." + rest
	if strings.HasPrefix(full, "os.posixpath") || strings.HasPrefix(full, "os.ntpath") {
		full = "os.path" + full[strings.Index(full, "path")+4:]
	}
	if r, ok := sameName[full]; ok {
		return r
	}
	if strings.HasPrefix(full, "pathlib.") {
		for _, c := range []string{"PosixPath", "PurePosixPath", "PurePath", "WindowsPath", "PureWindowsPath"} {
			if tail, ok := strings.CutPrefix(full, "pathlib."+c); ok && (tail == "" || tail[0] == '.') {
				return "pathlib.Path" + tail
			}
		}
	}
	return full
}

// reexported finds a module of the standard library that another one holds as
// an attribute, because it imports it: the last such part of the name counts.
func reexported(root, rest string) (string, bool) {
	parts := strings.Split(rest, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		inner := strings.TrimLeft(parts[i], "_")
		if !handedOn[inner] || root == inner && i == 0 || keepsOwn[root] && !alwaysForeign[inner] {
			continue
		}
		return strings.Join(append([]string{inner}, parts[i+1:]...), "."), true
	}
	return "", false
}

// handedOn are modules that are worth reaching by a detour.
var handedOn = set(`os sys subprocess builtins shutil ctypes socket importlib pty posix`)

// alwaysForeign are such modules of which nobody has an own one.
var alwaysForeign = map[string]bool{"os": true, "sys": true, "builtins": true, "shutil": true, "posix": true}

// keepsOwn are packages with submodules of such names.
var keepsOwn = set(`asyncio gevent eventlet trio anyio tornado twisted numpy future zmq test distutils multiprocessing psutil`)

var sameModule = map[string]string{
	"posix": "os", "nt": "os", "posixpath": "os.path", "ntpath": "os.path", "genericpath": "os.path", "_socket": "socket",
	"_ctypes": "ctypes", "_posixsubprocess": "subprocess", "cPickle": "pickle", "_pickle": "pickle", "commands": "subprocess",
	"popen2": "os", "urllib2": "urllib.request", "httplib": "http.client", "_winreg": "winreg", "_thread": "threading",
	"thread": "threading", "_frozen_importlib": "importlib", "_frozen_importlib_external": "importlib", "imp": "imp",
	"marshal": "marshal", "_operator": "operator", "_functools": "functools", "_codecs": "codecs", "_ssl": "ssl",
	"Queue": "queue", "__import__": "__import__", "_signal": "signal", "_curses": "curses",
}

var sameName = map[string]string{
	"importlib.__import__": "__import__", "importlib._bootstrap._gcd_import": "importlib.import_module",
	"importlib._gcd_import": "importlib.import_module", "importlib._bootstrap.__import__": "__import__",
	"importlib._bootstrap._load_unlocked": "importlib.import_module",
	"threading.start_new_thread":          "threading.Thread.start_new_thread",
	"urllib.urlopen":                      "urllib.request.urlopen", "urllib.urlretrieve": "urllib.request.urlretrieve",
	"urllib.quote": "urllib.parse.quote", "urllib.unquote": "urllib.parse.unquote", "urllib.urlencode": "urllib.parse.urlencode",
	"tempfile.TemporaryFile": "tempfile.TemporaryFile", "codecs.open": "open", "os.open": "os.open", "os.fdopen": "os.fdopen",
	"requests.session": "requests.Session", "requests.sessions.Session": "requests.Session",
	"pathlib.Path.__new__": "pathlib.Path", "socket.SocketType": "socket.socket", "os.getcwdu": "os.getcwd",
	"os.path.posixpath": "os.path", "requests.api.request": "requests.request", "requests.api.get": "requests.get",
	"requests.api.post": "requests.post", "file": "open", "tokenize.open": "open",
}

// dangerousModules are modules whose attributes, taken by a name that is not
// known, can be anything; tables may add to them.
var dangerousModules = set(`os subprocess sys builtins shutil ctypes importlib pty socket runpy pickle marshal requests`)

// builtins are the names that need no import.
var builtins = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(`abs aiter all anext any apply ascii bin bool breakpoint bytearray bytes callable chr
		classmethod compile complex copyright credits delattr dict dir divmod enumerate eval exec execfile exit file filter
		float format frozenset getattr globals hasattr hash help hex id input int intern isinstance issubclass iter len
		license list locals long map max memoryview min next object oct open ord pow print property quit range raw_input
		reduce reload repr reversed round set setattr slice sorted staticmethod str sum super tuple type unichr unicode
		vars xrange zip get_ipython __import__ __build_class__ __loader__ BaseException Exception ImportError KeyError ValueError
		TypeError OSError IOError RuntimeError StopIteration KeyboardInterrupt SystemExit AssertionError
		NotImplementedError AttributeError IndexError NameError ZeroDivisionError FileNotFoundError
		PermissionError TimeoutError UnicodeDecodeError UnicodeEncodeError ConnectionError NotImplemented Ellipsis
		ArithmeticError LookupError OverflowError RecursionError UnicodeError EOFError GeneratorExit
		Warning UserWarning DeprecationWarning PendingDeprecationWarning FutureWarning RuntimeWarning SyntaxWarning ImportWarning ResourceWarning`) {
		m[n] = true
	}
	return m
}()

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
	"ctypes.create_string_buffer": true, "ctypes.create_unicode_buffer": true,
}
