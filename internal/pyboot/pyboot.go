// Package pyboot has the program that runs judged Python in place of what was asked for.
// The gate stages it, and the agent's warm interpreters have it compiled before.
package pyboot

import _ "embed" // of the text

// Text defines the function _boot, which takes what runs differ by. A program is that and a
// line that executes what a call of it returns.
//
//go:embed boot.py
var Text string
