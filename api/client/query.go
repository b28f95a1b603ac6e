package client

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// What is zero stays out of a query.

func setString(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setInt(q url.Values, name string, value int64) {
	if value != 0 {
		q.Set(name, strconv.FormatInt(value, 10))
	}
}

func setBool(q url.Values, name string, value bool) {
	if value {
		q.Set(name, "true")
	}
}

func setTime(q url.Values, name string, value time.Time) {
	if !value.IsZero() {
		q.Set(name, value.Format(time.RFC3339Nano))
	}
}

func setMode(q url.Values, mode uint32) {
	if mode != 0 {
		q.Set("mode", strconv.FormatUint(uint64(mode), 8))
	}
}

// selection is what every list is asked for.
func selection(owner *string, labels sandbox.Labels) url.Values {
	q := url.Values{}
	if owner != nil {
		q.Set("owner", *owner)
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		q.Add("label", k+"="+labels[k])
	}
	return q
}
