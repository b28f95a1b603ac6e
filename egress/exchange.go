package egress

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// upgrades reports whether a request asks for another protocol on its connection.
func upgrades(req *http.Request) bool {
	for _, v := range req.Header.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return req.Header.Get("Upgrade") != ""
			}
		}
	}
	return false
}

// ownHeaders takes out of a request what is between the program and its proxy.
func ownHeaders(in io.Writer, req *http.Request) error {
	upgrade := ""
	if upgrades(req) {
		upgrade = req.Header.Get("Upgrade")
	}
	drop := []string{"Connection", "Upgrade", "Keep-Alive", "Te", "Proxy-Connection", "Proxy-Authorization"}
	for _, v := range req.Header.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			drop = append(drop, strings.TrimSpace(token))
		}
	}
	for _, name := range drop {
		req.Header.Del(name)
	}
	if upgrade != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", upgrade)
	}
	if _, given := req.Header["User-Agent"]; !given {
		req.Header.Set("User-Agent", "") // else the library writes its own
	}
	if !strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		return nil
	}
	req.Header.Del("Expect")
	_, err := io.WriteString(in, "HTTP/1.1 100 Continue\r\n\r\n")
	return err
}

// exchange writes a request anew and hands on what is answered, which out reads. It
// reports whether the program's connection can go on. An error means that there
// was no answer.
func (w *Way) exchange(in *inside, req *http.Request, l *link, out func() *bufio.Reader, again bool) (bool, error) {
	if err := in.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	if err := ownHeaders(in, req); err != nil {
		return false, err
	}
	wrote := make(chan error, 1)
	go func() { wrote <- req.Write(l) }()
	answered, err := w.hand(in, req, l, out())
	if err != nil {
		_ = l.Close()
		_ = in.SetReadDeadline(time.Unix(1, 0)) // frees the copying of the request's body
		<-wrote
		return false, err
	}
	// Who answers before it has the whole request may not want the rest.
	soon := time.Now().Add(time.Second)
	_, _ = l.SetWriteDeadline(soon), in.SetReadDeadline(soon)
	return <-wrote == nil && answered && again, nil
}

// hand hands an answer on, and reports whether it is whole and another may follow.
func (w *Way) hand(in *inside, req *http.Request, l *link, out *bufio.Reader) (whole bool, err error) {
	for {
		resp, err := http.ReadResponse(out, req)
		if err != nil {
			return false, fmt.Errorf("read the answer: %w", err)
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			switched(in, l, out, resp)
			return false, nil
		case resp.StatusCode < http.StatusOK: // news of an answer to come
			continue
		case req.ProtoMinor == 0:
			resp.ProtoMinor, resp.TransferEncoding, resp.Close = 0, nil, true
		case upstreamOnly(req, resp):
			resp.Close = false
		}
		resp.Header.Del("Proxy-Authenticate")
		failed := resp.Write(in)
		_ = resp.Body.Close() // what was not handed on is of no use
		return failed == nil && !resp.Close, nil
	}
}

// upstreamOnly reports whether an answer ends its connection because this side asked
// for that, and the program's can go on: its length is told.
func upstreamOnly(req *http.Request, resp *http.Response) bool {
	return req.Close && (resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0)
}

// switched carries what both sides say after they have agreed on another protocol.
func switched(in *inside, l *link, out *bufio.Reader, resp *http.Response) {
	if !upgrades(&http.Request{Header: resp.Header}) {
		return
	}
	if resp.Write(in) != nil {
		return
	}
	down := make(chan struct{})
	go func() {
		defer close(down)
		_, _ = io.Copy(in, out) // its end, whatever it is, ends this direction
		_ = in.CloseWrite()
	}()
	if _, err := io.Copy(l, in.r); err != nil {
		_ = l.Close()
	} else if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-down
}
