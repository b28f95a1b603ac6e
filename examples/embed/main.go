// Command embed runs code in a sandbox from a Go program of its own module.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/caisson-dev/caisson"
	"github.com/caisson-dev/caisson/sandbox"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := caisson.Open(ctx, caisson.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	res, err := c.Run(ctx, sandbox.Run{Language: "python", Code: "print(6 * 7)"}, sandbox.Streams{})
	if err != nil {
		return err
	}
	fmt.Printf("%s, code %d: %s", res.Reason, res.Code, res.Stdout)
	return nil
}
