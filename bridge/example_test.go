package bridge_test

import (
	"fmt"

	"github.com/caisson-dev/caisson/bridge"
	"github.com/caisson-dev/caisson/sandbox"
)

func ExampleMerge() {
	file := func(sum string) sandbox.FileState {
		return sandbox.FileState{Kind: sandbox.KindFile, SHA256: sum, Mode: 0o644}
	}
	records := []sandbox.ChangeRecord{
		{Exec: "1", Changes: []sandbox.FileChange{
			{Path: "notes", Op: sandbox.OpCreated, After: file("a")}, {Path: "draft", Op: sandbox.OpCreated, After: file("b")},
		}},
		{Exec: "2", Changes: []sandbox.FileChange{
			{Path: "notes", Op: sandbox.OpModified, Before: file("a"), After: file("c")}, {Path: "draft", Op: sandbox.OpDeleted, Before: file("b")},
		}},
	}
	for _, c := range bridge.Merge(records) {
		fmt.Println(c.Op, c.Path)
	}
	// Output: created notes
}
