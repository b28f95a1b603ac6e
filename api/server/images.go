package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/caisson-dev/caisson/api"
	"github.com/caisson-dev/caisson/api/wire"
	"github.com/caisson-dev/caisson/internal/feed"
	"github.com/caisson-dev/caisson/sandbox"
)

func images(s *Server) {
	handle(s, call{"Languages", get, "/v1/languages", "What can be run, with the state of the images", 0}, func(ctx context.Context, _ *nothing) (wire.Page[api.LanguageInfo], error) {
		list, err := s.svc.Languages(ctx)
		return all(list), err
	})
	handle(s, call{"LanguageOf", get, "/v1/languages/of", "A file's language, by its name", 0}, func(_ context.Context, in *struct {
		File string `query:"file" required:"true"`
	}) (wire.Language, error) {
		name, err := s.svc.LanguageOf(in.File)
		return wire.Language{Language: name}, err
	})
	long(s, call{"EnsureImage", post, "/v1/images/ensure", "Make an image present", 0}, func(ctx context.Context, b wire.ImageName) (sandbox.Image, error) {
		return s.svc.EnsureImage(ctx, b.Name)
	})
	long(s, call{"MakeImage", post, "/v1/images/make", "Make a language's image in a way of one's choice, or again", 0}, func(ctx context.Context, b wire.MakeImage) (sandbox.Image, error) {
		return s.svc.MakeImage(ctx, b.Name, b.MakeImageOptions)
	})
	long(s, call{"PullImage", post, "/v1/images/pull", "Fetch what a registry has now", 0}, func(ctx context.Context, b wire.PullImage) (sandbox.Image, error) {
		return s.svc.PullImage(ctx, b.Name, b.PullImageOptions)
	})
	long(s, call{"PrewarmImages", post, "/v1/images/prewarm", "Make several images present at once", 0}, func(ctx context.Context, b wire.ImageNames) (wire.Page[api.ImageResult], error) {
		list, err := s.svc.PrewarmImages(ctx, b.Names)
		return all(list), err
	})
	long(s, call{"UnpackImage", post, "/v1/images/unpack", "Unpack an image into a folder of the server's", 0}, func(ctx context.Context, b wire.ImageName) (sandbox.ImageRoot, error) {
		return s.svc.UnpackImage(ctx, b.Name)
	})
	handle(s, call{"UnpackedImages", get, "/v1/images/roots", "List what is unpacked", 0}, func(ctx context.Context, _ *nothing) (wire.Page[sandbox.ImageRoot], error) {
		list, err := s.svc.UnpackedImages(ctx)
		return all(list), err
	})
	handle(s, call{"PruneImages", post, "/v1/images/prune", "Remove what would not be made now", 0}, func(ctx context.Context, in *struct {
		Body wire.PruneImages `required:"false"`
	}) (wire.Page[sandbox.PrunedImage], error) {
		list, err := s.svc.PruneImages(ctx, in.Body.DryRun)
		return all(list), err
	})
	handle(s, call{"PinImages", post, "/v1/images/pin", "Hold images to what is present now", 0}, func(ctx context.Context, in *struct {
		Body wire.ImageNames `required:"false"`
	}) (wire.Page[sandbox.ImagePin], error) {
		list, err := s.svc.PinImages(ctx, in.Body.Names)
		return all(list), err
	})
	handle(s, call{"VerifyImages", get, "/v1/images/check", "Compare what is pinned with what there is and runs", 0}, func(ctx context.Context, _ *nothing) (wire.Page[sandbox.ImageCheck], error) {
		list, err := s.svc.VerifyImages(ctx)
		return all(list), err
	})
}

// long registers a call that takes long: who accepts events is told how it goes.
func long[B, O any](s *Server, c call, f func(ctx context.Context, body B) (O, error)) {
	contents := map[string]*huma.Schema{typeJSON: schemaOf[O](s), typeEvents: eventSchema()}
	handleRaw(s, c, contents, func(in *struct {
		Accept string `header:"Accept"`
		Body   B      `required:"false"`
	}, w http.ResponseWriter, r *http.Request) error {
		if !wantsEvents(in.Accept) {
			out, err := f(r.Context(), in.Body)
			if err != nil {
				return err
			}
			return writeJSON(w, out)
		}
		e, err := s.openEvents(w, r)
		if err != nil {
			return err
		}
		defer e.close()
		defer e.progress(s.cfg.Progress)()
		out, err := f(e.ctx, in.Body)
		e.end(err, out)
		return nil
	})
}

// progress sends news of long steps until what it returns is called.
func (e *events) progress(news *feed.Feed[sandbox.Progress]) (stop func()) {
	if news == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	seq := news.Subscribe(ctx)
	e.done.Go(func() {
		for item := range seq {
			_ = e.send(wire.EventProgress, "", item.Value) // what comes of it all is told by the last event
		}
	})
	return cancel
}
