package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/sandbox"
)

// lookAgain is how soon the audit is looked at anew for who follows it: what other
// processes of the state folder do stands there too, and nobody tells of it.
const lookAgain = 200 * time.Millisecond

// follow has what happens go on as events, each of its kind and with its number in
// the audit as its id.
func follow(s *Server) {
	handleRaw(s, call{"FollowEvents", get, "/v1/events", "What happens, from now on or behind Last-Event-ID, as events", 0}, map[string]*huma.Schema{typeEvents: eventSchema()}, func(in *struct {
		WhichEvents
		Last string `header:"Last-Event-ID" doc:"the number of the last event that was seen"`
	}, w http.ResponseWriter, r *http.Request) error {
		f := in.filter()
		after, err := seqOf("Last-Event-ID", in.Last)
		if err != nil {
			return err
		}
		f.After = after
		probe := f
		probe.Limit, probe.Newest = 1, in.Last == "" && f.Since.IsZero()
		for event, err := range s.svc.Events(r.Context(), probe) {
			if err != nil {
				return err // and not as the first event of an answer that began well
			}
			if probe.Newest {
				f.After = event.Seq // by number: the clock may be set
			}
		}
		e, err := s.openEvents(w, r)
		if err != nil {
			return err
		}
		defer e.close()
		s.followInto(e, f)
		return nil
	})
}

// followInto sends events until who asked is gone, or the server ends.
func (s *Server) followInto(e *events, f sandbox.EventFilter) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		for event, err := range s.svc.Events(e.ctx, f) {
			if err != nil {
				e.end(err, nil)
				return
			}
			if e.send(event.Kind, strconv.FormatInt(event.Seq, 10), event) != nil {
				return
			}
			f.After, f.Since = event.Seq, time.Time{} // as above
		}
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
	}
}
