package archtest

import "strings"

// Module is the module whose tree is checked.
const Module = "github.com/caisson-dev/caisson"

// The extractors below policy/facts have one importer.
const extractors, extractorHome = "policy/facts/", "cmd/caisson-scan"

// testHelpers may be imported by tests alone.
var testHelpers = []string{"internal/enginetest", "internal/dockerclient/dockertest", "internal/freeport", "runtimes/runtimetest", "store/storetest"}

// home is where a library may be imported.
type home struct {
	library string // path prefix
	folders []string
	except  []string // folders inside those
	tests   bool     // also in every test
	only    bool     // in tests alone
}

// Homes of heavy libraries.
var homes = []home{
	{library: "github.com/docker/docker", folders: []string{"runtimes/docker", "images", "internal/dockerclient", "internal/enginetest", "bench"}, tests: true},
	{library: "github.com/docker/cli", folders: []string{"images", "internal/dockerclient"}},
	{library: "github.com/open-policy-agent", folders: []string{"policy"}, except: []string{"policy/facts", "policy/scanner", "policy/tables"}},
	{library: "github.com/hashicorp/yamux", folders: []string{"agent", "runtimes/runtimetest"}}, // which plays an agent
	{library: "github.com/modelcontextprotocol", folders: []string{"mcp", "tools/mcptools"}, tests: true},
	{library: "github.com/vbauerster/mpb", folders: []string{"cli"}},
	{library: "charm.land", folders: []string{"cli"}},
	{library: "github.com/prometheus", folders: []string{"monitor"}},
	{library: "go.opentelemetry.io", folders: []string{"telemetry"}},
	{library: "go.opentelemetry.io/otel/sdk", folders: []string{"telemetry/otlp"}},
	{library: "github.com/expr-lang", folders: []string{"monitor"}},
	{library: "github.com/spf13", folders: []string{"cli", "cmd"}},
	{library: "modernc.org/sqlite", folders: []string{"store/sqlite"}},
	{library: "database/sql", folders: []string{"store", "bench"}},
	{library: "github.com/tree-sitter", folders: []string{"policy/facts/python", "policy/facts/javascript", "cmd/caisson-scan"}},
	{library: "mvdan.cc/sh", folders: []string{"policy/facts/shell"}},
	{library: "github.com/testcontainers", tests: true, only: true},
	{library: "github.com/google/go-cmp", tests: true, only: true},
	{library: "C", folders: []string{"policy/facts", "internal/syntaxtree", "cmd/caisson-scan"}},
}

// stdlibOnly are packages that import the standard library alone.
var stdlibOnly = []string{"sandbox", "api", "archtest"}

// below reports whether pkg is folder or lies in it.
func below(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func belowAny(pkg string, folders []string) bool {
	for _, f := range folders {
		if below(pkg, f) {
			return true
		}
	}
	return false
}
