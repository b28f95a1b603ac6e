package sqlite_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/store"
	"github.com/caisson-dev/caisson/store/sqlite"
	"github.com/caisson-dev/caisson/store/storetest"
)

func open(t testing.TB, dir string) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	if err != nil {
		t.Fatalf("open %s: %v", dir, err)
	}
	return s
}

func TestSuite(t *testing.T) { storetest.Run(t, open) }

func TestMain(m *testing.M) {
	if isHelper() {
		helper()
		return
	}
	goleak.VerifyTestMain(m)
}
