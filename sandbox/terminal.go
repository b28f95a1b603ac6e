package sandbox

// TerminalSize is the size of a terminal, in characters. A zero is 24 rows, or 80
// columns.
type TerminalSize struct {
	Rows uint16 `json:"rows,omitempty"`
	Cols uint16 `json:"cols,omitempty"`
}
