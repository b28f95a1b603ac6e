#!/usr/bin/env bash
# lint.sh checks the sources: gofmt, go vet, golangci-lint, go mod tidy.
# govulncheck is not among them: its database has to be fetched at each run,
# and CI has no way to it.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { echo "lint: $*"; }

step gofmt
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not formatted, run gofmt -w on:"; echo "$unformatted"; exit 1; } >&2

step go vet
go vet ./...

step go mod tidy
go mod tidy -diff
(cd examples/embed && go mod tidy -diff)

# The linter is a module of its own, so that its dependencies are not ours. It
# is built again only when its version has changed.
linter=.cache/bin/golangci-lint
if [ ! -x "$linter" ] || [ scripts/lint/go.mod -nt "$linter" ]; then
	step "building golangci-lint (some minutes, once)"
	(cd scripts/lint && go build -o "../../$linter" github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
fi
step golangci-lint
GOLANGCI_LINT_CACHE="$PWD/.cache/golangci-lint" "$linter" run ./...

if command -v shellcheck >/dev/null 2>&1; then
	step shellcheck
	shellcheck scripts/*.sh .ci/run
fi
step "no complaints"
