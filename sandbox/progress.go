package sandbox

// Progress is news of a long step, such as the making of an image.
type Progress struct {
	// Ref names what is being made. Steps of different names may go on at once.
	Ref string `json:"ref"`
	// Text is one line for people, "" for mere numbers.
	Text string `json:"text,omitempty"`
	// Current of Total bytes are done. A Total of 0 is not known.
	Current Bytes `json:"current_bytes,omitempty"`
	Total   Bytes `json:"total_bytes,omitempty"`
	// Done says that this is the step's last word, whether it went well or not.
	Done bool `json:"done,omitempty"`
}
