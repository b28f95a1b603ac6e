package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/sandbox"
)

// A program that a running exec gives a variable by which it loads code is asked about, and
// passes without it, or where the code is the image's.
func TestStartVariables(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ lang, program, variable, image string }{
		{"shell", "perl -e 1", "PERL5LIB=/workspace", "PERL5LIB=/usr/share/perl5"},
		{"shell", "uname", "LD_PRELOAD=/workspace/x.so", "LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so"},
		{"shell", "bash -c 'set -x; :'", "PS4=$(echo 1)", "PS4=+ "},
		{"shell", "iconv --version", "GCONV_PATH=/tmp", ""},
		{"python", "python3 -c 'import json'", "PYTHONPYCACHEPREFIX=/dev/shm", "PYTHONPYCACHEPREFIX=/tmp/none"},
		{"python", "mkdir /workspace/d; echo >/workspace/d/x.pyc; python3 -c 'import json'", "PYTHONPYCACHEPREFIX=/workspace/d", "PYTHONPYCACHEPREFIX=/tmp"},
		{"python", "pytest --version", "PYTEST_ADDOPTS=-p x", "PYTEST_ADDOPTS=-q -ra --tb=short -p no:cacheprovider"},
		{"python", "pytest --version", "PYTEST_PLUGINS=x", ""},
		{"python", "python3 -c 'print(1)'", "PYTHONHOME=/workspace", "PYTHONHOME=/usr"},
		{"node", "node -e 1", "NODE_OPTIONS=--require=/workspace/x.js", ""},
		{"node", "node -e 1", "NODE_PATH=/workspace/lib", "NODE_PATH=/usr/share/nodejs"},
		{"php", "php -v", "PHPRC=/workspace", "PHPRC=/etc/php/8.2/cli"},
		{"php", "php -v", "PHP_INI_SCAN_DIR=/workspace", ""},
		{"ruby", "ruby -v", "RUBYOPT=-r/workspace/x", ""},
		{"ruby", "ruby -v", "GEM_PATH=/workspace", ""},
		{"lua", "lua -v", "LUA_INIT=@/workspace/x.lua", ""},
		{"java", "java -version", "JDK_JAVA_OPTIONS=-javaagent:/workspace/x.jar", ""},
		{"java", "javac -version", "JDK_JAVAC_OPTIONS=-processorpath /workspace", ""},
		{"r", "R --version", "R_PROFILE_USER=/workspace/x", "R_PROFILE=/etc/R/Rprofile.site"},
		{"r", "R --version", "R_ENVIRON=/workspace/x", ""},
	} {
		t.Run(tt.lang+" "+tt.variable, func(t *testing.T) {
			t.Parallel()
			p := startsPlace(t, sandbox.StartsRule{Mode: sandbox.StartsJudge}, tt.lang)
			try := func(variable string, passes bool) {
				name, value, _ := strings.Cut(variable, "=")
				code := "export " + name + "='" + value + "'\n"
				if variable == "" {
					code = ""
				}
				res, err := p.Run(t.Context(), sandbox.Run{Language: tt.lang, Command: []string{"sh", "-c", code + tt.program + " >/dev/null 2>&1 && echo passed"}, Approve: sandbox.ApproveNever}, sandbox.Streams{})
				if err != nil {
					t.Fatal(err)
				}
				asked := slices.ContainsFunc(res.Starts, func(s sandbox.Start) bool {
					return s.Verdict == sandbox.Deny && slices.Contains(s.Rules, "SBX-GATE-0002")
				})
				if passes != (string(res.Stdout) == "passed\n") || passes == asked {
					t.Errorf("with %q: %+v %q %q", variable, res.Exit, res.Stdout, res.Stderr)
				}
			}
			try(tt.variable, false)
			try("", true)
			if tt.image != "" {
				try(tt.image, true)
			}
		})
	}
}
