#!/usr/bin/env bash
# demo.sh runs three real programs, each in a hardened container of its own,
# and shows what they print, how they end, how long they take and what memory
# they use.
set -euo pipefail
cd "$(dirname "$0")/.."

# run TITLE DIR ARGS… runs bin/caisson run ARGS… inside an example's folder, as
# a user would.
run() {
	local title=$1 dir=$2 code=0
	shift 2
	echo
	echo "== $title"
	echo "   \$ cd $dir && caisson run $*"
	(cd "$dir" && "$OLDPWD/bin/caisson" run --summary "$@") || code=$?
	[ "$code" -eq 0 ] || { echo "demo: $title ended with exit code $code" >&2; exit "$code"; }
}

run "Python: a report from a table of sales" examples/report --file sales.csv report.py -- sales.csv report.md
run "Node: latencies from an access log" examples/latency --file access.log latency.js -- access.log
run "Shell: the words of a text" examples/words --file caisson.txt words.sh -- caisson.txt
echo
echo "demo: all three programs ran, each in a container that is gone by now"
echo "caisson is $PWD/bin/caisson; make install puts it into /usr/local/bin, make install PREFIX=~/.local into your own"
