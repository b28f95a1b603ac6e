package archtest

import (
	"path"
	"strings"
)

// Module is the module whose tree is checked.
const Module = "github.com/caisson-dev/caisson"

// Table says which packages of ours each package may import, by folder. The
// entry with the longest matching folder counts. "x" is the package x alone,
// "x/..." also what is below it, and "..." every package. Whatever is below the
// importing entry's own folder is allowed, but for what has an entry of its own. A
// package without an entry is a violation.
var Table = map[string][]string{
	"sandbox": {},

	"agent/wire":   {},
	"agent/track":  {"agent/wire"},
	"agent/pid1":   {"agent/wire", "agent/track"},
	"agent/client": {"sandbox", "agent/wire"},

	"runtimes":             {"sandbox"},
	"runtimes/docker":      {"sandbox", "runtimes", "internal/dockerclient", "internal/filelock"},
	"runtimes/bubblewrap":  {"sandbox", "runtimes"},
	"runtimes/process":     {"sandbox", "runtimes"},
	"runtimes/seatbelt":    {"sandbox", "runtimes"},
	"runtimes/kubernetes":  {"sandbox", "runtimes"},
	"runtimes/runtimetest": {"sandbox", "runtimes", "agent/wire", "agent/client"},

	"manager": {"sandbox", "runtimes", "agent/client", "internal/filelock", "internal/lazyregexp"},
	"images":  {"sandbox", "internal/dockerclient", "internal/filelock", "internal/lazyregexp"},

	"policy":                  {"sandbox", "policy/facts", "internal/packed", "internal/lazyregexp"},
	"policy/facts":            {"internal/packed", "internal/lazyregexp"},
	"policy/facts/shell":      {"policy/facts", "internal/lazyregexp"},
	"policy/facts/python":     {"policy/facts", "internal/syntaxtree", "internal/lazyregexp"},
	"policy/facts/javascript": {"policy/facts", "internal/syntaxtree"},
	"policy/tables":           {"sandbox", "policy/facts"},
	"policy/scanner":          {"sandbox", "policy/facts"},
	"policy/approval":         {"sandbox"},
	"policies":                {},

	"monitor": {"sandbox"},
	"bridge":  {"sandbox"}, "bridge/transfer": {"sandbox"}, "bridge/sink": {"sandbox"},
	"testloop":     {"sandbox"},
	"tools":        {"sandbox"},
	"store":        {"sandbox"},
	"doctor":       {"sandbox", "api", "internal/dockerclient"},
	"store/sqlite": {"sandbox", "store", "bridge"}, "store/postgres": {"sandbox", "store"}, "store/storetest": {"sandbox", "store"},

	"service": {
		"sandbox", "api", "manager", "policy", "bridge", "monitor", "images", "testloop", "tools", "store", "runtimes",
	},
	"service/gate": {"sandbox", "manager", "policy", "internal/lazyregexp"},
	"api":          {"sandbox"},
	"mcp":          {"sandbox", "api"},
	"web":          {"sandbox", "api"},
	"cli":          {"sandbox", "api", "config", "cli/policycmd", "bridge/transfer"},
	"config":       {"sandbox"},

	"cli/policycmd": {"sandbox"},

	"internal/dockerclient": {"sandbox"},
	"internal/filelock":     {"sandbox"},
	"internal/enginetest":   {"..."},
	"internal/stopwatch":    {},
	"internal/syntaxtree":   {},
	"internal/packed":       {},
	"internal/lazyregexp":   {},
	"internal/recipe":       {},

	"cmd/caisson":       {"..."},
	"cmd/caisson-agent": {"agent/pid1", "agent/wire"},
	"cmd/caisson-scan":  {"policy/facts/...", "policy/scanner"},
	"bench":             {"..."},
	"examples":          {"..."},
	"scripts":           {},
	"archtest":          {},
	"docker":            {},
}

// The extractors below policy/facts have one importer.
const extractors, extractorHome = "policy/facts/", "cmd/caisson-scan"

// testHelpers may be imported by tests alone.
var testHelpers = []string{"internal/enginetest", "internal/stopwatch", "internal/dockerclient/dockertest", "runtimes/runtimetest", "store/storetest"}

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
	{library: "github.com/vbauerster/mpb", folders: []string{"cli"}},
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

// entry finds a package's entry in the table.
func entry(pkg string) (folder string, allowed []string, ok bool) {
	for folder = pkg; folder != "." && folder != ""; folder = path.Dir(folder) {
		if allowed, ok := Table[folder]; ok {
			return folder, allowed, true
		}
	}
	return "", nil, false
}

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

// matches reports whether one of the table's patterns covers pkg.
func matches(patterns []string, pkg string) bool {
	for _, p := range patterns {
		folder, deep := strings.CutSuffix(p, "/...")
		if p == "..." || p == pkg || deep && below(pkg, folder) {
			return true
		}
	}
	return false
}
