package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ExecList is a list of execs, which a decoder counts as it makes them: three
// bytes of JSON are one of them.
type ExecList []ExecInfo

// maxExecs is more than an agent knows of.
const maxExecs = 8192

// UnmarshalJSON refuses a list that no honest agent sends.
func (l *ExecList) UnmarshalJSON(b []byte) error {
	*l = nil
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return err // of null, there are none
	}
	for dec.More() {
		var e ExecInfo
		if len(*l) == maxExecs {
			return fmt.Errorf("more than %d execs", maxExecs)
		}
		if err := dec.Decode(&e); err != nil {
			return err
		}
		*l = append(*l, e)
	}
	return nil
}

// ExecInfo describes an exec in a list.
type ExecInfo struct {
	ID        string   `json:"id"`
	Argv      []string `json:"argv"`
	PID       int      `json:"pid"`
	AgeMS     int64    `json:"age_ms"`
	Running   bool     `json:"running"`
	Processes int      `json:"processes"`
	Stdout    int64    `json:"stdout"`
	Stderr    int64    `json:"stderr"`
	Lease     string   `json:"lease"`
	// Starts are the first that it started, of one that runs and whose starts are seen,
	// with what a list shows of each; StartsLeftOut counts the others.
	Starts        []Start `json:"starts,omitempty"`
	StartsLeftOut int     `json:"starts_left_out,omitempty"`
}
