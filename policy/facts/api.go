package facts

// CommandOpts is what stands around an argv.
type CommandOpts struct {
	// Word is how the program is written, for people, where it is not known.
	Word   string
	Pos    Pos
	Via    []string // put behind the builder's own chain, "subprocess.run"
	Redirs []Redir  // their files are recorded by Command
	// Stdin is what the program reads: a heredoc, a here string, what the
	// program before it in the pipeline prints, as far as it could be folded.
	// StdinKind is "", const, pipe, file, or net.
	Stdin     Value
	StdinKind string
	// StdinPos is where the text of Stdin stands verbatim, if it does
	// (heredoc).
	StdinPos   Pos
	PipeFrom   []string
	PipeTo     []string
	Background bool
	In         []string
	Env        map[string]Value
	// Out is what the program prints, where the caller could tell; it is what a
	// redirection of its output writes or sends.
	Out Value
}

// NestedOpts says where nested code comes from.
type NestedOpts struct {
	Pos Pos
	Via []string // "os.system", "sh -c", "base64 -d"
	// Verbatim says that the text stands at Pos as it is, so that lines within
	// it can be told.
	Verbatim bool
	// Start is how it is started; where that is not Known, like the text around it
	// in its own language, and unknown in another.
	Start Start
	// Expr says that it is an expression rather than a program (eval).
	Expr bool
}
