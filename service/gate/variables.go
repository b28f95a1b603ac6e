package gate

import (
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/internal/lazyregexp"
)

// loading are variables that make a program load code into its own process, by name; a
// trailing * is a prefix. Those of [folders] name files or folders to load from.
var loading = []string{
	// every program; those that are linked with a library
	"LD_*", "GLIBC_TUNABLES", "OPENSSL_CONF", "ODBCINI", "ODBCSYSINI",
	// shells
	"BASH_ENV", "ENV", functionPrefix + "*", "PS4", "ZDOTDIR",
	// Python and pytest
	"PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONBREAKPOINT", "PYTHONINSPECT", "PYTHONPYCACHEPREFIX", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "COVERAGE_PROCESS_START", "COVERAGE_RCFILE",
	// Node
	"NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "NODE_COMPILE_CACHE",
	// Perl, Ruby, Lua, PHP, R, Tcl
	"PERL5OPT", "PERL5DB", "RUBYOPT", "RUBYGEMS_GEMDEPS", "BUNDLE_GEMFILE", "IRBRC", "LUA_*", "R_DEFAULT_PACKAGES",
	// Java, .NET, Mono, Erlang, Julia, Guile, Deno
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JDK_JAVAC_OPTIONS", "IBM_JAVA_OPTIONS", "OPENJ9_JAVA_OPTIONS",
	"DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "CORECLR_PROFILER_PATH_64", "MONO_ENV_OPTIONS", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ELIXIR_ERL_OPTIONS",
	// editors
	"VIMINIT", "EXINIT", "EMACSLOADPATH",
}

// folders are those of them that say where to load from, where a program finds what is
// the image's as well: that is as harmless as the image is.
var folders = []string{
	"LD_LIBRARY_PATH", "LD_PRELOAD", "GCONV_PATH", "OPENSSL_ENGINES", "OPENSSL_MODULES",
	"PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB", "GEM_HOME", "GEM_PATH", "PHPRC", "PHP_INI_SCAN_DIR",
	"R_HOME", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER", "R_LIBS", "TCL_LIBRARY", "TCLLIBPATH", "TK_LIBRARY", "CLASSPATH",
	"AWKPATH", "AWKLIBPATH", "ERL_LIBS", "MONO_PATH", "JULIA_LOAD_PATH", "GUILE_LOAD_PATH", "GUILE_LOAD_COMPILED_PATH", "CAML_LD_LIBRARY_PATH", "GS_LIB",
	"GTK_MODULES", "GTK_PATH", "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "GDK_PIXBUF_MODULE_FILE", "GST_PLUGIN_PATH", "QT_PLUGIN_PATH", "QML2_IMPORT_PATH",
	"SASL_PATH", "HDF5_PLUGIN_PATH", "GDAL_DRIVER_PATH", "LTDL_LIBRARY_PATH", "MAGICK_CODER_MODULE_PATH", "LIBGL_DRIVERS_PATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "OCL_ICD_VENDORS",
}

// starting are those that make a program start another one, which is seen where starts
// are judged, or change what it does with what it finds.
var starting = []string{
	"DYLD_*", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS0", "PS1", "IFS", "CDPATH", "BASH_XTRACEFD", "PYTHONEXECUTABLE", "PYTHONCASEOK",
	"NODE_REPL_*", "NODE_EXTRA_CA_CERTS", "NODE_V8_COVERAGE", "NPM_CONFIG_*", "npm_config_*", "npm_*",
	"GIT_*", "PAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "MANPAGER", "SHELL", "INPUTRC", "XDG_CONFIG_*", "PHP*",
	"MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "RUSTC_WRAPPER", "GCC_EXEC_PREFIX", "COMPILER_PATH", "CC", "CXX", "CPP", "AR", "AS", "LD", "FC", "LEX", "YACC", "RM",
	"TAR_OPTIONS", "RSYNC_RSH", "POSIXLY_CORRECT", "SSH_ASKPASS", "SUDO_ASKPASS",
}

// functionPrefix begins the names of variables by which bash hands its functions on.
const functionPrefix = "BASH_FUNC_"

// StartVariables are the variables that make a program load code into its own process,
// by name; a trailing * is a prefix. Others make programs start something, which is
// seen when it happens.
func StartVariables() []string { return slices.Concat(loading, folders, []string{"PYTHONPATH"}) }

// loads reports whether a variable makes programs load or run something when they
// start. The catalogue of languages may set such all the same: it is the operator's.
func (p places) loads(name, value string) bool {
	switch {
	case slices.Contains(folders, name):
		return !p.ofImage(value)
	case name == "PYTEST_ADDOPTS":
		return !shownOnly().MatchString(value)
	case name == "PS4": // which a shell expands before each line that set -x shows
		return strings.Contains(value, "$(") || strings.ContainsAny(value, "`@")
	}
	return named(loading, name) || named(starting, name)
}

// shownOnly finds options of pytest's that say what it shows, and when it ends.
var shownOnly = lazyregexp.New(`^\s*((-[qvxls]+|-r\w+|-p\s*no:\w+|--(tb|color|maxfail|durations|verbosity|show-capture|capture)=[\w-]+` +
	`|--(verbose|quiet|exitfirst|no-header|no-summary|strict-markers|strict-config|disable-warnings))(\s+|$))*$`)

// named reports whether a list has a variable.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		prefix, wild := strings.CutSuffix(p, "*")
		return name == p || wild && strings.HasPrefix(name, prefix)
	})
}
