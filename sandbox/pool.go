package sandbox

// PoolWant is how many sandboxes of a language are to be ready before anybody asks.
type PoolWant struct {
	Language string
	Runtime  string // "" is the default
	Size     int
}

// PoolShelf is what a pool keeps ready of one kind.
type PoolShelf struct {
	Language  string        `json:"language"` // "" of an image without one
	Runtime   string        `json:"runtime"`
	Image     string        `json:"image,omitempty"` // that was named in place of the language's
	Workspace WorkspaceKind `json:"workspace"`       // a tmpfs is for runs, a volume for new sessions
	Size      int           `json:"size"`            // of them that are to be ready now
	Ready     int           `json:"ready"`
	Making    int           `json:"making"`
	Taken     int           `json:"taken"`             // so far
	Missed    int           `json:"missed"`            // so far: asked for when none was ready
	Problem   string        `json:"problem,omitempty"` // why the last could not be made
}
