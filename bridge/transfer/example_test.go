package transfer_test

import (
	"fmt"

	"github.com/caisson-dev/caisson/bridge/transfer"
)

func ExampleIgnore() {
	var g transfer.Ignore
	g.Add(".", "build/\n*.log\n")
	g.Add("docs", "!kept.log\n")
	fmt.Println(g.Match("build", true), g.Match("a/b.log", false), g.Match("docs/kept.log", false))
	// Output: true true false
}
