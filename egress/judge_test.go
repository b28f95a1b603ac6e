package egress_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/egress"
	"github.com/caisson-dev/caisson/sandbox"
)

// judge notes what it is asked, and answers as said.
type judge struct {
	mu    sync.Mutex
	asked []string
	says  func(ctx context.Context, a egress.Asked) (egress.Answer, error)
}

func (j *judge) ask(ctx context.Context, a egress.Asked) (egress.Answer, error) {
	j.mu.Lock()
	j.asked = append(j.asked, fmt.Sprintf("%s:%d %v", a.Host, a.Port, a.Listed))
	j.mu.Unlock()
	return j.says(ctx, a)
}

func (j *judge) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.asked, "; ")
}

func by(name string, always bool) *sandbox.ApprovedBy {
	return &sandbox.ApprovedBy{By: name, Always: always}
}

// TestJudged has each host of a way judged, and lets what is not listed pass by an
// approval alone, for as long as that holds.
func TestJudged(t *testing.T) {
	t.Parallel()
	names := map[string][]string{}
	for _, name := range []string{"listed", "banned", "no", "once", "session", "broken", "mild", "inner"} {
		names[name+".test"] = []string{"192.0.3.1"}
	}
	names["inner.test"] = []string{"10.0.0.1"}
	j := &judge{says: func(_ context.Context, a egress.Asked) (egress.Answer, error) {
		switch a.Host {
		case "banned.test":
			return egress.Answer{Refused: "rule 7"}, nil
		case "no.test":
			return egress.Answer{Refused: "Ann said no"}, nil
		case "once.test", "inner.test":
			return egress.Answer{Approval: by("Ann", false)}, nil
		case "session.test":
			return egress.Answer{Approval: by("Ann", true)}, nil
		case "broken.test":
			return egress.Answer{Approval: by("nobody", true)}, errors.New("the store is gone")
		}
		return egress.Answer{}, nil // also of a host that is not listed
	}}
	o := &outside{names: names, judge: j.ask}
	network := allow("listed.test", "banned.test")
	network.Deny = []string{"denied.test"}
	w, proxy := o.proxy(t, network)
	for _, tt := range []struct{ host, why string }{
		{"listed.test", ""},
		{"banned.test", "policy refuses it: rule 7"},
		{"no.test", "it is not on the list, and Ann said no"},
		{"once.test", ""},
		{"session.test", ""},
		{"broken.test", "the store is gone"},
		{"mild.test", "it is not on the list"},
		{"inner.test", "its address 10.0.0.1 is not a public one, and not listed itself"},
		{"denied.test", "the list denies it"},
		{"192.0.3.9", "it is not on the list"},
	} {
		for range 2 {
			before, _ := w.Connections()
			say(t, proxy, "CONNECT "+tt.host+":443 HTTP/1.1\r\n\r\n")
			c := until(t, w, len(before)+1)[len(before)]
			want := tt.why
			if want == "" {
				want = "not dialled in a test"
			}
			if c.Why != want || (c.Approval != nil) != (tt.host == "once.test" || tt.host == "session.test" || tt.host == "inner.test") {
				t.Errorf("%s: told %+v, want %q", tt.host, c, want)
			}
		}
	}
	want := "listed.test:443 true; banned.test:443 true; no.test:443 false; once.test:443 false; once.test:443 false; session.test:443 false; " +
		"broken.test:443 false; broken.test:443 false; mild.test:443 false; inner.test:443 false; inner.test:443 false"
	if got := j.all(); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
}

// TestUnlistedRefused asks nobody where what is not listed is refused.
func TestUnlistedRefused(t *testing.T) {
	t.Parallel()
	j := &judge{says: func(context.Context, egress.Asked) (egress.Answer, error) {
		return egress.Answer{Approval: by("Ann", true)}, nil
	}}
	o := &outside{judge: j.ask}
	network := allow("a.test")
	network.Unlisted = sandbox.Deny
	w, proxy := o.proxy(t, network)
	say(t, proxy, "CONNECT b.test:443 HTTP/1.1\r\n\r\n")
	if c := until(t, w, 1)[0]; c.Why != "it is not on the list" || c.Verdict != sandbox.Deny || j.all() != "" {
		t.Errorf("told %+v, asked %s", c, j.all())
	}
}

// TestManyWait asks once for all connections that wait for one host, however long
// that takes, and about so many hosts and no more.
func TestManyWait(t *testing.T) {
	t.Parallel()
	answer := make(chan egress.Answer)
	j := &judge{says: func(ctx context.Context, a egress.Asked) (egress.Answer, error) {
		if a.Host != "a.test" {
			return egress.Answer{Refused: "no"}, nil
		}
		if _, bounded := ctx.Deadline(); bounded {
			return egress.Answer{Refused: "a person has as long as it takes"}, nil
		}
		select {
		case ans := <-answer:
			return ans, nil
		case <-ctx.Done():
			return egress.Answer{}, ctx.Err()
		}
	}}
	o := &outside{names: map[string][]string{"a.test": {"192.0.3.1"}}, judge: j.ask}
	w, proxy := o.proxy(t, allow("listed.test"))
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() { say(t, proxy, "CONNECT a.test:443 HTTP/1.1\r\n\r\n") })
	}
	answer <- egress.Answer{Approval: by("Ann", true)}
	waiting.Wait()
	told := until(t, w, 8)
	for _, c := range told {
		if c.Approval == nil {
			t.Errorf("told %+v", c)
		}
	}
	if j.all() != "a.test:443 false" {
		t.Errorf("asked %s, told %+v", j.all(), told)
	}
	for i := range 40 {
		say(t, proxy, fmt.Sprintf("CONNECT x%d.test:443 HTTP/1.1\r\n\r\n", i))
	}
	told = until(t, w, 48)
	if n := strings.Count(j.all(), ";") + 1; n != 32 || told[47].Why != "it is not on the list, and there were 32 questions about others" {
		t.Errorf("%d were asked about, the last is told as %+v", n, told[47])
	}
}
