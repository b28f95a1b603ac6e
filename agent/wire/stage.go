package wire

// Stage is a file that the agent holds ready for an exec, at [StagePath],
// readable and not writable by its user, gone with the exec.
type Stage struct {
	Name string `json:"name"` // a relative path, clean and without ".."
	// Known is the digest of a text that it begins with, one of [Welcome].Known. Data
	// is what follows that.
	Known string `json:"known,omitempty"`
	Data  []byte `json:"data,omitempty"`
}
