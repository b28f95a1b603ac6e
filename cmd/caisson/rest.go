package main

import (
	"net/http"
	"runtime/debug"
	"time"
)

// quiet is for how long nobody has asked a server before it rests.
const quiet = 10 * time.Second

// resting has a server give memory back to the system once nobody has asked it for
// a while. Garbage would else stay until some request makes enough more of it: that
// of loading the rules is several times what a server works with.
func resting(h http.Handler, giveBack func()) (_ http.Handler, stop func() bool) {
	rest := time.AfterFunc(quiet, giveBack)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest.Reset(quiet)
		defer rest.Reset(quiet)
		h.ServeHTTP(w, r)
	}), rest.Stop
}

// giveBack gives the system what a server has in memory and needs not while it rests.
func (a *app) giveBack() {
	debug.FreeOSMemory()
	if err := unmapProgram(); err != nil {
		a.log.Warn("the program's pages stay mapped", "error", err)
	}
}
