package wire

// Starts says what becomes of what an exec starts while it runs.
type Starts struct {
	// Ask has those that the agent cannot decide asked about, by [OpJudge]; nobody
	// there to ask refuses them. Otherwise all are let pass, and told.
	Ask bool `json:"ask,omitempty"`
	// End ends the exec at the first that is refused. Otherwise it alone fails, as a
	// program that may not be run does.
	End bool `json:"end,omitempty"`
	// Call has the exec's judge called for, by a frame of its own stream, once it has
	// started what is to be asked about, or told soon. Where nobody was called, [End]
	// tells the rest.
	Call bool `json:"call,omitempty"`
	// Variables are those that make programs load or run something, by name; a
	// trailing * is a prefix. A program that gets one is not decided as another is.
	Variables []string `json:"variables,omitempty"`
	// Rules names what the answers follow from: with others, what was let pass is
	// asked about anew.
	Rules string `json:"rules,omitempty"`
}

// Judge hears what an exec starts, as Start frames, until that has ended or the
// stream does, and answers those that ask by Verdict frames. An exec, which may not
// have begun, has one judge: the next waits until that has gone. A Verdict without a
// number is answered by a Start without one, behind all that was to tell before, as is
// the end of an exec of which not all was told.
//
// With Again it takes the place of one that has gone, or goes: the exec runs, and its
// starts are seen; else it fails. It hears at once a Start without a number that has the
// exec's Env, another one once the place is free, and then what was told before.
type Judge struct {
	ID    string `json:"id"`              // of the exec
	Rules string `json:"rules,omitempty"` // as in [Starts], from now on
	Again bool   `json:"again,omitempty"`
}

// Start is a program that is about to replace a process.
type Start struct {
	N      uint64 `json:"n"`      // of the exec's starts, from 1
	PID    int    `json:"pid"`    // in the sandbox's namespace
	Parent int    `json:"parent"` // the process that made it
	AtUS   int64  `json:"at_us"`  // since the exec began
	// Path is what was asked for, absolute where that could be told; File is what it
	// leads to, "" where that could not be found out.
	Path Name   `json:"path"`
	File Name   `json:"file,omitempty"`
	Argv []Name `json:"argv"`
	Env  []Name `json:"env,omitempty"` // of [Starts].Variables, where the exec itself has them otherwise
	Dir  Name   `json:"dir"`
	// Cut says that Argv or Env is not all of it.
	Cut bool `json:"cut,omitempty"`
	// Own says that users of the sandbox can write the file. Then SHA256 and Size are
	// the file's, and Script its bytes where it is no machine code and not too large.
	Own    bool   `json:"own,omitempty"`
	SHA256 []byte `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Native bool   `json:"native,omitempty"` // machine code
	Script []byte `json:"script,omitempty"`
	// Asks says that it waits for a Verdict. Refused says why the agent refused it
	// by itself.
	Asks    bool   `json:"asks,omitempty"`
	Refused string `json:"refused,omitempty"`
	// LeftOut, where N is 0, counts those that were let pass and not told, since the
	// last one without a number.
	LeftOut int `json:"left_out,omitempty"`
	// End says how start N ended, which was told before. Then nothing else is set.
	End *StartEnd `json:"end,omitempty"`
}

// StartEnd is the end of what was started.
type StartEnd struct {
	AtUS int64 `json:"at_us"` // since the exec began
	// Code and Signal are as in [End]; Code is nil where that is not known.
	Code   *int `json:"code,omitempty"`
	Signal int  `json:"signal,omitempty"`
	// Replaced says that the process became another program, and did not end.
	Replaced bool `json:"replaced,omitempty"`
}

// Verdict answers a Start that asks.
type Verdict struct {
	N     uint64 `json:"n"`
	Allow bool   `json:"allow,omitempty"`
	// Same says that the same start may pass again unasked; Any that the program may,
	// whatever its arguments, while it is the image's and gets none of the variables.
	Same bool `json:"same,omitempty"`
	Any  bool `json:"any,omitempty"`
	// Cause is why the exec ends, where a refusal ends it.
	Cause string `json:"cause,omitempty"`
	// Hold comes before the answer, which a person gives: the exec's processes are
	// stopped meanwhile, and its clock stands still.
	Hold bool `json:"hold,omitempty"`
}

// What a Start tells at most.
const (
	MaxStartArgs   = 256       // words of Argv
	MaxStartText   = 64 << 10  // bytes of Argv and Env
	MaxStartScript = 512 << 10 // bytes of Script
)
