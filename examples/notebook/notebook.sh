#!/bin/sh
# A session as a notebook uses it: cells in two languages share one workspace,
# a server runs beside them, and what happened can be read afterwards.
set -eu
caisson=${CAISSON:-caisson}
name=notebook-$$
$caisson session create "$name" --language python --idle 10m >/dev/null
trap '$caisson session rm --force "$name"' EXIT

echo "cell 1: python writes"
$caisson exec "$name" -c '
import json
json.dump({"rows": [n * n for n in range(5)]}, open("data.json", "w"))
print("written")
'

echo "cell 2: the shell reads what python wrote"
$caisson exec "$name" -l shell -- cat data.json
echo

echo "cell 3: a worker goes on in the background"
id=$($caisson exec "$name" --detach -- python3 -u -c '
import time
for n in range(3):
    print("step", n); time.sleep(0.1)
')
$caisson logs "$name" "$id" --follow

echo "cell 4: files come and go"
printf 'from the host\n' | $caisson files write "$name" notes/host.txt
$caisson files cat "$name" notes/host.txt

echo "audit:"
$caisson audit list --session "$name" --kind exec.started --json | wc -l | tr -d ' '
