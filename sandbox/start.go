package sandbox

import "time"

// StartsMode says what becomes of what an exec starts while it runs. The zero value
// is [StartsOff].
type StartsMode string

// The modes.
const (
	StartsOff   StartsMode = "off"   // it is not seen
	StartsTell  StartsMode = "tell"  // it is seen and told
	StartsJudge StartsMode = "judge" // it is judged as an exec is, before it happens
)

// StartsRule says how the starts of execs are dealt with. The zero value is that they
// are not seen.
type StartsRule struct {
	Mode StartsMode `json:"mode,omitempty"`
	// Goes lets an exec go on whose program could not start another; that one sees that
	// it may not be run. Otherwise the exec is ended with [ReasonDenied].
	Goes bool `json:"goes,omitempty"`
	// Required refuses execs where starts cannot be seen. Otherwise their Result says
	// so.
	Required bool `json:"required,omitempty"`
}

// Check reports what is wrong with a rule. Errors: Invalid.
func (r StartsRule) Check() error {
	switch r.Mode {
	case "", StartsOff, StartsTell, StartsJudge:
		return nil
	}
	return Errorf(Invalid, "unknown mode of starts %q", r.Mode).WithHint("the modes are off, tell and judge")
}

// Sees reports whether starts are seen.
func (r StartsRule) Sees() bool { return r.Mode == StartsTell || r.Mode == StartsJudge }

// Start is a program that an exec started, or wanted to start, while it ran.
type Start struct {
	PID    int      `json:"pid"`    // in its sandbox
	Parent int      `json:"parent"` // the process that it was made by
	At     Duration `json:"at_ms"`  // since the exec began
	// Path is what was asked for. Argv is bounded: Cut says that there was more.
	Path string   `json:"path"`
	Argv []string `json:"argv,omitempty"`
	Cut  bool     `json:"cut,omitempty"`
	// SHA256 is the digest of the file, where that is none of the image's.
	SHA256 string `json:"sha256,omitempty"`
	// Verdict is [Allow] or [Deny]. Why says what was wrong, Rules which rules found
	// something.
	Verdict Verdict  `json:"verdict"`
	Why     string   `json:"why,omitempty"`
	Rules   []string `json:"rules,omitempty"`
	// Ended is when it ended, since the exec began; 0 is that this is not known. Code
	// is as a shell gives it, and nil where the kernel does not say (before Linux 6.15)
	// or nobody waited for it. Replaced says that its process became another program.
	Ended    Duration `json:"ended_ms,omitempty"`
	Code     *int     `json:"code,omitempty"`
	Signal   int      `json:"signal,omitempty"`
	Replaced bool     `json:"replaced,omitempty"`
}

// MaxStarts is how many starts of an exec are told one by one, the first ones and those
// that were refused. Those beyond are counted.
const MaxStarts = 256

// StartsPatience is how long a judge of a start may take where no person is asked.
const StartsPatience = 30 * time.Second
