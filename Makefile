# caisson: `make` lists what can be made.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
GO ?= go
PREFIX ?= /usr/local
BIN := bin
# Where the policy is measured; absent elsewhere, and then skipped.
CORPUS ?= ../shared/corpora
# What has tests: the rest need not be compiled for them.
TESTED := $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...
# Packages whose tests load the policy engine, and the extractors: to compile all
# of that a second time, for the race detector, takes minutes. make soak does.
UNRACED := /(policy|service/gate|cmd/caisson)$$
EXTRACT := /(cmd/caisson-scan|policy/facts.*)$$
# What the set-up brings is not skipped where it is absent.
STRICT := CAISSON_REQUIRE_DOCKER=1 CAISSON_REQUIRE_TOOLS=1
# SQLite is C that was translated to Go: the race detector's checks of pointers,
# which never concern it, make it four times as slow. Without paths, a checkout
# uses what another has compiled.
RACE := -race -trimpath -gcflags='modernc.org/...=-d=checkptr=0'
# The C compiler must assume that any function of a shared library is replaced by
# another; the parsers are in none, and a tenth quicker once it may inline theirs.
export CGO_CFLAGS ?= -O2 -g -fno-semantic-interposition
# How the one static, cgo-free binary and its helper are built.
STATIC := CGO_ENABLED=0 $(GO) build -trimpath
# How the scanner is: static, and small. What is inlined makes it larger by a
# tenth, and only Python's extractor, which has most to do, quicker by as much.
OURS := github.com/caisson-dev/caisson/policy/facts
SCANNER := CGO_ENABLED=1 $(GO) build -trimpath -tags netgo,osusergo \
	-gcflags=mvdan.cc/sh/v3/...=-l -gcflags=$(OURS)/shell=-l -gcflags=$(OURS)/javascript=-l \
	-ldflags '-s -w -linkmode external -extldflags "-static -Wl,--gc-sections"'

.PHONY: help setup setup-tests build sdk install images languages image demo test lint bench bench-smoke eval soak ci darwin clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install and start what is missing: Docker Engine, mmdebstrap, a C compiler
	@scripts/setup.sh

setup-tests: ## as setup, and what the tests alone need: a registry, skopeo, musl, docker compose, Prometheus, tmux, an SDK of npm's
	@scripts/setup.sh --tests

build: ## build bin/caisson and its helpers
	$(STATIC) -o bin/caisson ./cmd/caisson
	$(STATIC) -ldflags "-s -w" -o bin/caisson-agent ./cmd/caisson-agent
	$(SCANNER) -o bin/caisson-scan ./cmd/caisson-scan
	@chmod 755 bin/caisson bin/caisson-agent bin/caisson-scan # whatever the umask is: users of sandboxes run the agent, as "tool"

sdk: ## build the Python package, wheel and source archive, into bin/
	python3 sdk/python/packaging/caisson_build.py bin

install: build ## install caisson below PREFIX (/usr/local), or below DESTDIR for a package
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/caisson
	install -m 755 $(BIN)/caisson $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(BIN)/caisson-agent $(BIN)/caisson-scan $(DESTDIR)$(PREFIX)/libexec/caisson/

images: build ## make the images of Python, Node, shell and the E2B profile present (the first time: assembled, two minutes)
	@bin/caisson images build python python@e2b node shell

languages: build ## make the images of all languages present: some 2 GB, and five minutes the first time
	@bin/caisson images build

image: build ## build the image of caisson itself, caisson/caisson:dev
	docker build -t caisson/caisson:dev -f docker/caisson/Dockerfile .

demo: setup build images ## run three real programs, each in a hardened container of its own
	@scripts/demo.sh

# Most tests wait for engines, disks and time-outs: more of them run at once than
# there are processors. None depends on how soon.
test: setup-tests build images ## do all set-up, then run every test
	$(STRICT) $(GO) test $(RACE) -timeout 20m -p 3 -parallel 6 $$($(TESTED) | grep -vE '$(UNRACED)|$(EXTRACT)')
	$(STRICT) CGO_ENABLED=0 $(GO) test -trimpath -timeout 20m -parallel 6 $$($(TESTED) | grep -E '$(UNRACED)')
	$(STRICT) $(GO) test -trimpath -tags netgo,osusergo -timeout 20m $$($(TESTED) | grep -E '$(EXTRACT)')

lint: ## gofmt, go vet, golangci-lint, go mod tidy
	@scripts/lint.sh

bench: setup-tests build images ## run every benchmark; results go to bench/results
	@scripts/bench.sh $(ARGS)

bench-smoke: build ## run the benchmarks with a few rounds, to see that they work
	@scripts/bench.sh --smoke $(ARGS)

eval: build ## judge the policy by the evaluation sets in CORPUS, and by the programs below the folders in BENIGN
	@CAISSON_SCAN=$(CURDIR)/bin/caisson-scan CORPUS="$(CORPUS)" BENIGN="$(BENIGN)" $(GO) run ./bench/eval $(ARGS)

soak: setup-tests build images ## the longer variants of the tests: more rounds, more sandboxes, larger files
	CAISSON_SOAK=1 $(STRICT) $(GO) test $(RACE) -timeout 2h -count=1 ./...

darwin: ## see that the command builds for a Mac, and the agent for its containers
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/caisson
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/caisson-agent

ci: ## what CI runs: set-up, lint, a Mac's build, the tests, a smoke run of the benchmarks
	$(MAKE) --no-print-directory setup-tests
	$(MAKE) --no-print-directory lint
	$(MAKE) --no-print-directory darwin
	$(MAKE) --no-print-directory bench-smoke
	$(MAKE) --no-print-directory languages
	CAISSON_REQUIRE_BUBBLEWRAP=1 CAISSON_REQUIRE_LANGUAGES=1 $(MAKE) --no-print-directory test

clean: ## remove what was built; images and the engine stay
	rm -rf bin .cache
