package sandbox

import "time"

// Orphan is something that caisson made and whose holder is gone.
type Orphan struct {
	Kind    string    `json:"kind"` // session, sandbox, volume, folder, changes
	ID      ID        `json:"id"`
	Name    string    `json:"name"`
	Holder  string    `json:"holder,omitempty"` // who answered for it: a process, or a state folder
	Created time.Time `json:"created"`
	// Removed is false in a dry run, and where Problem says why.
	Removed bool     `json:"removed"`
	Problem *Problem `json:"problem,omitempty"`
}

// Done notes what came of removing it.
func (o *Orphan) Done(err error) {
	o.Removed, o.Problem = err == nil, ProblemOfOne(err)
}
