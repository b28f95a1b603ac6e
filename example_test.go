package caisson_test

import (
	"context"
	"fmt"
	"log"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/sandbox"
)

// It needs an engine, and so is compiled here and run in examples/embed.
func Example() {
	ctx := context.Background()
	c, err := caisson.Open(ctx, caisson.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	res, err := c.Run(ctx, sandbox.Run{Language: "python", Code: "print(6 * 7)"}, sandbox.Streams{})
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Printf("%s, code %d: %s", res.Reason, res.Code, res.Stdout)
}
