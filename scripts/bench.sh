#!/usr/bin/env bash
# bench.sh runs every benchmark with the flags that it is given, and says at its
# end which of them did not hold or could not be measured. Each program below
# bench is one, but for eval, which needs its corpora and is `make eval`.
set -uo pipefail
cd "$(dirname "$0")/.."
export CAISSON_SCAN=$PWD/bin/caisson-scan

failed=()
for program in bench/*/main.go; do
	name=$(basename "$(dirname "$program")")
	[ "$name" = eval ] && continue
	go run "./bench/$name" "$@" || failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "bench: not as asked: ${failed[*]}" >&2; exit 1; }
