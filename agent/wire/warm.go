package wire

// Warm says what a warm interpreter has imported before.
type Warm struct {
	Modules []string `json:"modules,omitempty"`
}
