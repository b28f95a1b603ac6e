// Package policies holds the rules and the data that ship with caisson: Rego
// modules by topic, their tests beside them, and YAML under data. It is files
// and no code; package policy reads them.
package policies

import "embed"

// FS has all rules and data. Paths are relative to this folder.
//
//go:embed blacklist.yaml data */*.rego
var FS embed.FS
