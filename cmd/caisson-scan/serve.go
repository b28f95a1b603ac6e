package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/caisson-dev/caisson/policy/facts"
	"github.com/caisson-dev/caisson/policy/facts/javascript"
	"github.com/caisson-dev/caisson/policy/facts/python"
	"github.com/caisson-dev/caisson/policy/facts/shell"
	"github.com/caisson-dev/caisson/policy/scanner"
)

// extractors are all that this program can read.
func extractors(t *facts.Tables) facts.Dispatcher {
	return facts.Dispatcher{
		facts.Shell:      shell.New(t),
		facts.Python:     python.New(),
		facts.JavaScript: javascript.New(),
		facts.TypeScript: javascript.NewTypeScript(),
	}
}

// serve answers requests until the input ends.
func serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	hello, tables, err := scanner.ReadHello(r)
	if err != nil {
		return err
	}
	langs := extractors(tables)
	ready := scanner.Ready{Lockdown: scanner.Open}
	if hello.Require > scanner.Open {
		ready = lockdown(hello)
	}
	if ready.Lockdown < hello.Require {
		ready.Error = fmt.Sprintf("lockdown is %s, %s is required: %v", ready.Lockdown, hello.Require, ready.Steps)
	}
	if err := scanner.WriteFrame(out, ready); err != nil || ready.Error != "" {
		return errors.Join(err, errors.New(ready.Error))
	}
	for {
		var ask scanner.Ask
		if err := scanner.ReadFrame(r, scanner.MaxAsk, &ask); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		ctx, cancel := within(time.Duration(ask.Millis) * time.Millisecond)
		lim := hello.Limits
		lim.NoCalls = lim.NoCalls || !ask.Calls
		doc := facts.ScanStarted(ctx, tables, langs, lim, ask.Lang, ask.Code, ask.Start)
		cancel()
		if err := scanner.WriteFrame(out, scanner.Answer{ID: ask.ID, Document: doc}); err != nil {
			return err
		}
	}
}
