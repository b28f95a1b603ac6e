package policy_test

import (
	"context"
	"testing"

	"github.com/caisson-dev/caisson/policies"
	"github.com/caisson-dev/caisson/policy"
	"github.com/caisson-dev/caisson/policy/tables"
)

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := policy.Load(context.Background(), policy.Config{Rules: policies.FS, Lazy: true}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadTables(b *testing.B) {
	for b.Loop() {
		if _, err := tables.Load(policies.FS); err != nil {
			b.Fatal(err)
		}
	}
}
