// Package policies holds the rules and the data that ship with caisson: Rego
// modules by topic, their tests beside them, and YAML under data. It is files
// and no code; package policy reads them.
package policies

import "embed"

// FS has all rules and data. Paths are relative to this folder.
//
//go:embed blacklist.yaml data */*.rego
var FS embed.FS

// Plans has the part of FS that judges sandboxes and not texts: it is prepared
// in a fraction of the time, so that no sandbox waits for the rest.
//
//go:embed blacklist.yaml data/settings.yaml data/waivers.yaml main/*.rego container/*.rego
var Plans embed.FS
