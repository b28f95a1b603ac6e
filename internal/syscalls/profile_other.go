//go:build !linux

package syscalls

import _ "embed" // of the profile

//go:embed profile.json
var made string

// Profile is the list in the form that container engines take in place of their
// own default, as Linux made it. It is safe for concurrent use.
func Profile() (string, error) { return made, nil }
