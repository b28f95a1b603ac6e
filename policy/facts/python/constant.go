package python

// sources are attributes that bring something in.
var sources = map[string][]string{
	"sys.argv": {"argv"}, "sys.orig_argv": {"argv"}, "os.environ": {"env"}, "os.environb": {"env"}, "sys.stdin": {"stdin"},
	"sys.stdin.buffer": {"stdin"},
}

// constants are attributes whose value folding needs.
var constants = map[string]*val{
	"stat.S_IXUSR": integer(0o100), "stat.S_IXGRP": integer(0o10), "stat.S_IXOTH": integer(1), "stat.S_IRWXU": integer(0o700),
	"stat.S_IRUSR": integer(0o400), "stat.S_IWUSR": integer(0o200), "stat.S_IRGRP": integer(0o40), "stat.S_IWGRP": integer(0o20),
	"stat.S_IROTH": integer(4), "stat.S_IWOTH": integer(2), "stat.S_IRWXG": integer(0o70), "stat.S_IRWXO": integer(7),
	"stat.S_ISUID": integer(0o4000), "stat.S_ISGID": integer(0o2000), "stat.S_IEXEC": integer(0o100),
	"stat.S_IFREG": integer(0o100000), "stat.S_IFIFO": integer(0o10000), "stat.S_IFSOCK": integer(0o140000),
	"stat.S_IFCHR": integer(0o20000), "stat.S_IFBLK": integer(0o60000),
	"signal.SIGKILL": integer(9), "signal.SIGTERM": integer(15), "signal.SIGSTOP": integer(19), "signal.SIGINT": integer(2),
	"mmap.PROT_READ": integer(1), "mmap.PROT_WRITE": integer(2), "mmap.PROT_EXEC": integer(4),
	"os.sep": str("/"), "os.path.sep": str("/"), "os.linesep": str("\n"), "os.curdir": str("."), "os.pardir": str(".."),
	"os.extsep": str("."), "os.pathsep": str(":"), "os.devnull": str("/dev/null"), "os.name": str("posix"),
	"sys.executable": str("python3"), "sys.platform": str("linux"), "sys.byteorder": str("little"),
	"string.ascii_lowercase": str("abcdefghijklmnopqrstuvwxyz"),
	"string.ascii_uppercase": str("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
	"string.ascii_letters":   str("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
	"string.digits":          str("0123456789"),
	"string.hexdigits":       str("0123456789abcdefABCDEF"),
	"string.punctuation":     str("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
	"string.whitespace":      str(" \t\n\r\v\f"),
	"string.printable":       str("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \t\n\r\v\f"),
}
