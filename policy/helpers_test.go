package policy_test

import (
	"io/fs"
	"testing/fstest"
)

func userFS(m map[string]fstest.MapFS) map[string]fs.FS {
	out := map[string]fs.FS{}
	for k, v := range m {
		out[k] = v
	}
	return out
}
