//go:build !linux

package javascript

import "time"

// threadTime is the time of day, where a thread's own time cannot be told.
func threadTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
