package mcp

import (
	"container/list"
	"net/url"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caisson-dev/caisson/sandbox"
)

// kept is an output of a run, or an artifact.
type kept struct {
	key, media string
	data       []byte
}

// shelf keeps the newest of what answers link to, up to a size: each for the owner
// whose run it was.
type shelf struct {
	most sandbox.Bytes

	mu    sync.Mutex
	byKey map[string]*list.Element // of *kept
	order list.List                // the oldest first
	size  sandbox.Bytes
}

func shelfKey(who sandbox.Caller, exec sandbox.ID, name string) string {
	return who.Owner + "\x00" + string(exec) + "\x00" + name
}

// put keeps something, and links to it.
func (s *shelf) put(who sandbox.Caller, exec sandbox.ID, name, media string, data []byte) *mcp.ResourceLink {
	size := int64(len(data))
	if media == "" {
		media = mediaOf(name, data)
	}
	k := &kept{shelfKey(who, exec, name), media, data}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = map[string]*list.Element{}
	}
	if old, ok := s.byKey[k.key]; ok {
		s.drop(old)
	}
	s.byKey[k.key] = s.order.PushBack(k)
	s.size += sandbox.Bytes(size)
	for s.size > s.most && s.order.Len() > 1 {
		s.drop(s.order.Front())
	}
	uri := url.URL{Scheme: scheme, Host: "outputs", Path: "/" + string(exec) + "/" + name}
	return &mcp.ResourceLink{URI: uri.String(), Name: name, MIMEType: media, Size: &size}
}

func (s *shelf) drop(e *list.Element) {
	k := s.order.Remove(e).(*kept)
	delete(s.byKey, k.key)
	s.size -= sandbox.Bytes(len(k.data))
}

// get returns what is kept for a caller.
func (s *shelf) get(who sandbox.Caller, exec sandbox.ID, name string) (*kept, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byKey[shelfKey(who, exec, name)]
	if !ok {
		return nil, false
	}
	return e.Value.(*kept), true
}

// contents are bytes as a resource is read: a text where they are one.
func contents(media string, b []byte) *mcp.ReadResourceResult {
	c := &mcp.ResourceContents{MIMEType: media}
	if len(b) > 0 && utf8.Valid(b) {
		c.Text = string(b)
	} else {
		c.Blob = append([]byte{}, b...)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}
}
