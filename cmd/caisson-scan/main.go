// Command caisson-scan turns hostile source text into facts. It reads requests
// from standard input and writes answers to standard output, as package
// scanner describes, after it has locked itself down: no network, no files, no
// programs, and limits on memory and CPU. It is not meant to be run by hand.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "caisson-scan:", err)
		os.Exit(1)
	}
}
