package shell_test

import "testing"

// What build and test scripts do every day is told from what it looks like.
func TestEveryday(t *testing.T) {
	t.Parallel()
	runCases(t, []testCase{
		{name: "options of set by name", src: `set -euo pipefail; rm -r "$1/x"`, want: []string{"cmd rm -r …"}, not: []string{"file delete /workspace/pipefail", "file delete /x"}},
		{name: "options of set, and words", src: `set -eo pipefail -- /etc; rm -r "$1/x"`, want: []string{"cmd rm -r /etc/x"}},
		{name: "words behind options of set", src: `set -e -o errexit /etc; rm -r "$1/x"`, want: []string{"cmd rm -r /etc/x"}},
		{name: "a backup of what is named", src: `rm "$po"~; rm $po~`, not: []string{"file delete /home"}},
		{name: "the home and more", src: `rm -r ~$x`, want: []string{"file delete /home/user home"}},
		{name: "the folder above its own", src: `r="$(readlink -f "$(dirname "$0")/..")"; echo x > "$r/a"`, want: []string{"file write /workspace/a workspace"}},
		{name: "a folder of the system above its own", src: `r="$(realpath "$(dirname "$0")/../../../etc")"; echo x > "$r/a"`, want: []string{"file write /etc/a system_config"}},
		{name: "a function as text", src: `f() { rm -rf /; }; sudo bash -c "$(declare -f f); f"`, want: []string{wipe, "cmd bash -c f () { rm -rf /; }; f"}, not: []string{"dyn unparsable"}},
		{name: "a function as a file", src: `f() { echo 'rm -rf /' | sh; }; { declare -f f; echo f; } > a; rm() { :; }; sh a`, want: []string{wipe}},
		{name: "programs in a folder of its own", src: `mkdir bin; echo 'rm -rf /' > bin/ls; chmod +x bin/ls; PATH=$PWD/bin:$PATH; ls`, want: []string{wipe}},
		{name: "a copy in a folder of its own", src: `d=$(mktemp -d); cp /bin/rm $d/x; PATH=$d:$PATH; x -rf /`, want: []string{"cmd /bin/rm -rf /"}},
		{name: "functions by a part of their names", src: `do_a() { rm -rf "$1"; }; do_b() { :; }; c=$(ls d); do_$c /`, want: []string{wipe, "dyn opaque_command from function"}},
		{name: "functions by what an argument says", src: `do_a() { rm -rf "$1"; }; do_b() { :; }; do_$1 /`, want: []string{wipe}, not: []string{"dyn opaque_command"}},
		{name: "no function begins so", src: `to_a() { :; }; c=$(ls d); do_$c x`, want: []string{"dyn opaque_command from file:/workspace/d command"}},
		{name: "too little of a name", src: `rename() { :; }; c=$(ls d); r$c x`, want: []string{"dyn opaque_command from file:/workspace/d command"}},
		{name: "a path that begins like a function", src: `do_a() { :; }; c=$(ls d); do_/$c x`, want: []string{"dyn opaque_command from file:/workspace/d command"}},
		{name: "a function that is read", src: `do_a() { :; }; read c; do_$c x`, want: []string{"dyn opaque_command from stdin"}},
		{name: "the tests of a folder", src: `for t in tests/*; do ./$t; done`, want: []string{"dyn opaque_command from listed:/workspace/tests/*"}},
		{name: "the files here", src: `for t in *; do $t; done`, not: []string{"dyn opaque_command from listed:/workspace/*"}},
		{name: "files of everybody", src: `for t in /tmp/*; do $t; done`, not: []string{"dyn opaque_command from listed:/tmp/*"}},
		{name: "programs of the system", src: `for t in /usr/bin/r*; do $t -rf x; done`, not: []string{"dyn opaque_command from listed:/usr/bin/r*"}},
		{name: "a file that the environment names", src: `echo 'rm -rf /' > "$D/a"; cat "$D/a" | sh`, want: []string{wipe}},
		{name: "another that it names", src: `echo 'rm -rf /' > "$D/a"; cat "$E/a" | sh`, want: []string{"dyn opaque_code from env:E"}, not: []string{wipe}},
		{name: "one of two arguments", src: `echo 'rm -rf /' > "$1"; cat "$2" | sh`, not: []string{wipe}},
		{name: "what a file of the project may set", src: `. "$(dirname "$0")/lib.sh"; $X ~/a`, want: []string{"dyn opaque_command from env:X sourced"}},
		{name: "what a file of everybody may set", src: `. /tmp/lib.sh; $X ~/a`, want: []string{"dyn opaque_command from env:X"}},
		{name: "options are added to a command", src: `c=/usr/bin/cc; for o in a b c d e; do [ $o = $1 ] && c="$c -$o"; [ -n "$2" ] && c="$c -O$o"; done; $c x.c`, not: []string{"dyn opaque_command"}},
		{name: "letters are added to a command", src: `c=r; [ $1 ] && c=${c}m; [ $2 ] && c=${c}d; [ $3 ] && c=${c}i; [ $4 ] && c=${c}r; [ $5 ] && c=${c}x; [ $6 ] && c=${c}z; $c y`, want: []string{"dyn opaque_command"}},
		{name: "a default by if", src: `if [ -z "$PY" ]; then PY=rm; fi; $PY -rf /`, want: []string{wipe}, not: []string{"dyn opaque_command"}},
		{name: "a default by or", src: `[ -n "$PY" ] || PY=rm; $PY -rf /`, want: []string{wipe}, not: []string{"dyn opaque_command"}},
		{name: "a default of what is read", src: `read PY; [ -z "$PY" ] && PY=ls; $PY -rf /`, want: []string{"dyn opaque_command from stdin"}},
		{name: "a default that is not known", src: `[ -z "$PY" ] && PY=$(cat a); $PY -rf /`, want: []string{"dyn opaque_command"}},
		{name: "no default", src: `if [ -n "$PY" ]; then PY=ls; fi; $PY -c 'a b'`, want: []string{"dyn opaque_command from env:PY"}},
		{name: "a default after all", src: `if [ -z "$PY" ]; then PY=ls; fi; PY=$2; $PY -c 'a b'`, want: []string{"dyn opaque_command from argv"}},
	})
}
