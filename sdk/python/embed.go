// Package python hands out texts of the Python package that lies beside it.
package python

import _ "embed" // of the texts

// Values is the text of the module by which functions speak with their caller.
//
//go:embed caisson/values.py
var Values string

// Inside is the text that runs a function's call.
//
//go:embed caisson/_inside.py
var Inside string
