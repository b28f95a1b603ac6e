package sandbox

// State is where a sandbox is in its life. The zero value is unset.
type State string

// The states.
const (
	StateCreating State = "creating"
	StateReady    State = "ready"
	StateBusy     State = "busy" // at least one exec runs
	StatePaused   State = "paused"
	StateStopping State = "stopping"
	StateGone     State = "gone"
	StateFailed   State = "failed"
)

// transitions lists what may follow each state.
var transitions = map[State][]State{
	"":            {StateCreating},
	StateCreating: {StateReady, StateFailed, StateStopping},
	StateReady:    {StateBusy, StatePaused, StateStopping, StateFailed},
	StateBusy:     {StateReady, StateStopping, StateFailed},
	StatePaused:   {StateReady, StateStopping, StateFailed},
	StateFailed:   {StateStopping, StateCreating},
	StateStopping: {StateGone},
	StateGone:     nil,
}

// Next is the one function that makes a transition. It returns to, or a
// Conflict where a sandbox cannot get there from here:
//
//	creating ──► ready ◄──► busy
//	    │        │ ▲ │        │
//	    │        ▼ │ └────┐   │
//	    │       paused    │   │
//	    │          │      │   │
//	    └──────────┴──────┴───┴──► failed ──► creating (replaced)
//	    │          │      │   │       │
//	    └──────────┴──────┴───┴───────┴──► stopping ──► gone
func (s State) Next(to State) (State, error) {
	for _, t := range transitions[s] {
		if t == to {
			return to, nil
		}
	}
	return s, Errorf(Conflict, "a sandbox that is %s cannot become %s", s, to)
}
