package egress

import (
	"context"
	"sync"

	"github.com/caisson-dev/caisson/sandbox"
)

// Asked is a host that a program wants to reach, and that no list denies.
type Asked struct {
	Host   string // a name as [sandbox.HostName] has it, or an address
	Port   int
	Listed bool
}

// Answer says whether a host may be reached. One that is not listed needs Approval,
// too.
type Answer struct {
	Refused  string // why it may not; "" permits it
	Approval *sandbox.ApprovedBy
}

// A program can ask for as many hosts as it likes, and a person can be asked about
// mostQuestions of them. mostJudged bounds what is remembered of the others.
const (
	mostQuestions = 32
	mostJudged    = 1024
)

// judged are the answers about hosts, and the questions that wait for one.
type judged struct {
	mu        sync.Mutex
	hosts     map[Asked]*judgement
	questions int
}

type judgement struct {
	done   chan struct{} // closed once there is an answer
	answer Answer
	err    error
}

// judge has a host judged, once for all connections that wait for it. A refusal holds
// for the exec, and so does what lets pass, but for an approval that was for once.
func (w *Way) judge(ctx context.Context, a Asked) (Answer, error) {
	if w.cfg.Judge == nil {
		return Answer{}, nil
	}
	w.judged.mu.Lock()
	j, there := w.judged.hosts[a]
	if !there {
		if !a.Listed && w.judged.questions >= mostQuestions {
			w.judged.mu.Unlock()
			return Answer{}, refuse("%s, and there were %d questions about others", sandbox.NotListed, mostQuestions)
		}
		if !a.Listed {
			w.judged.questions++
		}
		j = &judgement{done: make(chan struct{})}
		w.judged.hosts[a] = j
	}
	w.judged.mu.Unlock()
	if there {
		select {
		case <-j.done:
			return j.answer, j.err
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		}
	}
	j.answer, j.err = w.cfg.Judge(ctx, a)
	w.judged.mu.Lock()
	once := j.answer.Approval != nil && !j.answer.Approval.Always
	if once || j.err != nil || len(w.judged.hosts) > mostJudged {
		delete(w.judged.hosts, a)
	}
	w.judged.mu.Unlock()
	close(j.done)
	return j.answer, j.err
}

// permit says whether a target may be reached, and by whose approval. It may wait for
// a person.
func (w *Way) permit(ctx context.Context, t target) (*sandbox.ApprovedBy, error) {
	if t.port < 1 || t.port > 65535 {
		return nil, refuse("port %d", t.port)
	}
	if denied(t.deny, t.name, t.addr, t.port) {
		return nil, refuse("the list denies it")
	}
	a := Asked{Host: t.name, Port: t.port, Listed: allowed(t.allow, t.name, t.addr, t.port)}
	if t.name == "" {
		a.Host = t.addr.String()
	}
	if !a.Listed && (t.network.Unlisted == sandbox.Deny || t.name == "") {
		return nil, refuse(sandbox.NotListed)
	}
	answer, err := w.judge(ctx, a)
	switch {
	case err != nil:
		return nil, err
	case answer.Refused != "" && a.Listed:
		return nil, refuse("policy refuses it: %s", answer.Refused)
	case answer.Refused != "":
		return nil, refuse("%s, and %s", sandbox.NotListed, answer.Refused)
	case !a.Listed && answer.Approval == nil:
		return nil, refuse(sandbox.NotListed)
	}
	return answer.Approval, nil
}
