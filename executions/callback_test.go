package executions_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/executions"
	"github.com/caisson-dev/caisson/outbox"
	"github.com/caisson-dev/caisson/sandbox"
)

const secret = "0123456789abcdef"

// calling is a run whose end is posted.
func calling(text, url string) sandbox.ExecutionOptions {
	o := code(text)
	o.Callback = &sandbox.CallbackOptions{URL: url, Secret: secret}
	return o
}

// callback waits until a callback stands somewhere.
func (p *place) callback(t *testing.T, id sandbox.ID, state sandbox.CallbackState) sandbox.Callback {
	t.Helper()
	var c sandbox.Callback
	until(t, string(state), func() bool {
		e, err := p.Execution(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		c = *e.Callback
		return c.State == state
	})
	return c
}

// The end is posted with the result, signed by the submitter's secret or by the
// server's, and neither of them nor the address is shown.
func TestCallback(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	p := serving(t, &fake{run: echo}, func(c *executions.Config) { c.Secret = []byte("the server's secret") })
	own := p.submit(t, "", calling("1", hears.URL+"/t0ken?key=t0ken"))
	servers := calling("2", hears.URL)
	servers.Callback.Secret = ""
	other := p.submit(t, "", servers)
	c := p.callback(t, own, sandbox.CallbackDelivered)
	p.callback(t, other, sandbox.CallbackDelivered)
	if c.Attempts != 1 || !c.Signed || c.Address != hears.URL || c.Settled.IsZero() || c.Error != "" {
		t.Errorf("%+v", c)
	}
	list := hears.of("execution.ended")
	if len(list) != 2 {
		t.Fatalf("heard %d", len(list))
	}
	for _, got := range list {
		by, text := secret, "1"
		if got.body.Execution.ID == other {
			by, text = "the server's secret", "2"
		}
		e := got.body.Execution
		if got.header.Get("X-Caisson-Signature") != outbox.Sign([]byte(by), got.header.Get("X-Caisson-Timestamp"), got.raw) {
			t.Errorf("%s is not signed", text)
		}
		if e.State != sandbox.ExecutionSucceeded || string(e.Result.Stdout) != text || got.header.Get("X-Caisson-Delivery") != string(got.body.Delivery) || got.header.Get("X-Caisson-Event") != "execution.ended" {
			t.Errorf("%+v %v", got.body, got.header)
		}
		if strings.Contains(string(got.raw), "t0ken") || strings.Contains(string(got.raw), by) {
			t.Errorf("it tells a secret: %s", got.raw)
		}
	}
	if left, err := p.store.ExecutionOptions(t.Context(), own); err != nil || left.Callback != nil {
		t.Errorf("its secret is kept: %+v, %v", left, err)
	}
}

// What is not taken is tried again under the same id, also by the next server.
func TestCallbackOutlivesServer(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	hears.answer(http.StatusServiceUnavailable)
	p := serving(t, &fake{run: echo}, nil)
	id := p.submit(t, "", calling("1", hears.URL))
	until(t, "tried", func() bool { return len(hears.of("execution.ended")) == 1 })
	until(t, "written down", func() bool {
		e, err := p.Execution(t.Context(), id, 0)
		return err == nil && e.Callback.Attempts == 1 && strings.Contains(e.Callback.Error, "503") && !e.Callback.Next.IsZero()
	})
	p.close(t)
	hears.answer(http.StatusOK)
	later := open(t, p.dir, &fake{run: echo}, nil)
	later.start(t)
	if c := later.callback(t, id, sandbox.CallbackDelivered); c.Attempts != 2 || c.Error != "" || !c.Next.IsZero() {
		t.Errorf("%+v", c)
	}
	list := hears.of("execution.ended")
	if len(list) != 2 || list[0].body.Delivery != list[1].body.Delivery || list[1].header.Get("X-Caisson-Attempt") != "2" {
		t.Errorf("%+v", list)
	}
}

// A callback is tried again in its time where the clock is set back meanwhile.
func TestCallbackClockSet(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	hears.answer(http.StatusServiceUnavailable)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	p := openAt(t, t.TempDir(), &fake{run: echo}, func(c *executions.Config) { c.Now = now }, now)
	p.start(t)
	id := p.submit(t, "", calling("1", hears.URL))
	until(t, "written down", func() bool {
		e, err := p.Execution(t.Context(), id, 0)
		return err == nil && e.Callback.Attempts > 0
	})
	hears.answer(http.StatusOK)
	ahead.Store(-int64(time.Hour))
	if c := p.callback(t, id, sandbox.CallbackDelivered); c.Attempts < 2 {
		t.Errorf("%+v", c)
	}
}

// A clock that is set by an hour while no server runs, also over a start of the machine,
// keeps no callback waiting, has none posted twice, and has no result forgotten.
func TestClockSetMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  time.Duration
		boot string
	}{"ahead": {time.Hour, "a"}, "back": {-time.Hour, "a"}, "back over a start": {-time.Hour, "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hears, dir, began := listen(t), t.TempDir(), time.Now()
			hears.answer(http.StatusServiceUnavailable)
			serve := func(set time.Duration, boot string) *place {
				now := func() time.Time { return time.Now().Add(set) }
				p := openAt(t, dir, &fake{run: echo}, func(c *executions.Config) {
					c.Now, c.Keep = now, 30*time.Minute
					c.Up = func() (string, time.Duration) { return boot, time.Since(began) }
				}, now)
				p.start(t)
				return p
			}
			p := serve(0, "a")
			done := p.ended(t, p.submit(t, "", code("1")))
			id := p.submit(t, "", calling("2", hears.URL))
			until(t, "written down", func() bool {
				e, err := p.Execution(t.Context(), id, 0)
				return err == nil && e.Callback.Attempts > 0
			})
			p.close(t)
			tried := len(hears.of("execution.ended"))
			hears.answer(http.StatusOK)
			p = serve(c.set, c.boot)
			p.Prune(t.Context())
			if e, err := p.Execution(t.Context(), done.ID, 0); err != nil || string(e.Result.Stdout) != string(done.Result.Stdout) {
				t.Errorf("what was kept: %+v, %v", e, err)
			}
			if got := p.callback(t, id, sandbox.CallbackDelivered); got.Attempts != tried+1 || len(hears.of("execution.ended")) != tried+1 {
				t.Errorf("%+v, heard %d and then %d", got, tried, len(hears.of("execution.ended")))
			}
		})
	}
}

// A callback that nobody takes is tried so often, with pauses that grow, and is then
// dead: it can be read and sent again, and is not forgotten before its execution.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	hears.answer(http.StatusTeapot)
	p := serving(t, &fake{run: echo}, nil)
	id := p.submit(t, "acme", calling("1", hears.URL))
	p.submit(t, "acme", code("no callback"))
	until(t, "tried", func() bool { return len(hears.of("execution.ended")) == 1 })
	letter := sandbox.Letter{Body: []byte(`{"execution":"` + string(id) + `"}`)}
	var pauses []time.Duration
	until(t, "written down", func() bool {
		e, err := p.Execution(t.Context(), id, 0)
		return err == nil && e.Callback.Attempts == 1
	})
	for {
		before := time.Now()
		out := p.Carry(t.Context(), letter)
		if err := p.store.Apply(t.Context(), out.Beside); err != nil {
			t.Fatal(err)
		}
		if out.Next.IsZero() {
			break
		}
		pauses = append(pauses, out.Next.Sub(before).Round(time.Second))
	}
	if len(pauses) != 10 || pauses[0] != 15*time.Second || pauses[9] != time.Hour {
		t.Errorf("pauses: %v", pauses)
	}
	list, err := p.DeadLetters(t.Context(), sandbox.DeadLetterFilter{Owner: new("acme")})
	if err != nil || len(list) != 1 || list[0].Execution != id || list[0].Callback.Attempts != 12 || !strings.Contains(list[0].Callback.Error, "418") {
		t.Fatalf("%+v, %v", list, err)
	}
	if none, err := p.DeadLetters(t.Context(), sandbox.DeadLetterFilter{Owner: new("other")}); err != nil || len(none) != 0 {
		t.Errorf("of another: %+v, %v", none, err)
	}
	hears.answer(http.StatusNoContent)
	again, err := p.Resend(t.Context(), id)
	if err != nil || again.Callback.State != sandbox.CallbackPending || again.Callback.Delivery != list[0].Callback.Delivery {
		t.Errorf("%+v, %v", again, err)
	}
	p.callback(t, id, sandbox.CallbackDelivered)
	if list, err := p.DeadLetters(t.Context(), sandbox.DeadLetterFilter{}); err != nil || len(list) != 0 {
		t.Errorf("after that: %+v, %v", list, err)
	}
	if _, err := p.Resend(t.Context(), id); !errors.Is(err, sandbox.Conflict) {
		t.Errorf("what is not dead: %v", err)
	}
	if all := hears.of("execution.ended"); string(all[len(all)-1].body.Execution.Result.Stdout) != "1" {
		t.Errorf("sent again: %+v", all[len(all)-1].body)
	}
}

// An address that is not allowed is refused where it is given as numbers, and where
// a name leads there when it is dialed: then the letter is dead at once.
func TestCallbackToPrivateNetwork(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	strict := outbox.NewPoster(outbox.PosterConfig{Allows: "THIS=1 allows it"})
	t.Cleanup(func() { _ = strict.Close() })
	p := serving(t, &fake{run: echo}, func(c *executions.Config) { c.Poster = strict })
	for _, address := range []string{"http://example.org", "https://127.0.0.1", "https://[::1]", "https://169.254.169.254/latest", "https://10.0.0.8"} {
		if _, err := p.Submit(t.Context(), calling("x", address), sandbox.Local{}); !errors.Is(err, sandbox.Denied) || !strings.Contains(sandbox.HintOf(err), "THIS=1") {
			t.Errorf("%s: %v, %s", address, err, sandbox.HintOf(err))
		}
	}
	id := p.submit(t, "", calling("x", strings.Replace(hears.URL, "http://127.0.0.1", "https://localhost", 1)))
	if c := p.callback(t, id, sandbox.CallbackDead); c.Attempts != 1 || !strings.Contains(c.Error, "not a public one") {
		t.Errorf("%+v", c)
	}
}

// While one runs its submitter hears of it, and not after its end; a beat that is
// not taken is not sent again.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	hears := listen(t)
	hears.answer(http.StatusInternalServerError)
	let := make(chan struct{})
	p := serving(t, &fake{run: held(let)}, nil)
	o := calling("1", hears.URL)
	o.Callback.Heartbeat = sandbox.Duration(time.Second)
	id := p.submit(t, "", o)
	until(t, "two beats", func() bool { return len(hears.of("execution.heartbeat")) >= 2 })
	hears.answer(http.StatusOK)
	close(let)
	p.callback(t, id, sandbox.CallbackDelivered)
	beats := hears.of("execution.heartbeat")
	seen := map[sandbox.ID]bool{}
	for i, b := range beats {
		e := b.body.Execution
		if b.body.Beat != i+1 || e.State != sandbox.ExecutionRunning || e.ID != id || seen[b.body.Delivery] ||
			b.header.Get("X-Caisson-Signature") != outbox.Sign([]byte(secret), b.header.Get("X-Caisson-Timestamp"), b.raw) {
			t.Errorf("beat %d: %+v", i, b.body)
		}
		seen[b.body.Delivery] = true
	}
	time.Sleep(1500 * time.Millisecond) // in which there would be another
	if after := hears.of("execution.heartbeat"); len(after) != len(beats) {
		t.Errorf("%d beats after the end", len(after)-len(beats))
	}
}
