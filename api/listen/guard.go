package listen

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard refuses requests that a page of a stranger has a browser make: by a name
// that only points here, or from an origin that is not ours. Nobody reaches a Unix
// socket so.
func (s *Sockets) guard(h http.Handler, one socket) http.Handler {
	if one.Addr().Network() == "unix" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, why := hostOf(r.Host), ""
		switch {
		case !s.knowsHost(host):
			why = "the server is not known as " + host
		case !s.knowsOrigin(r) && (s.cfg.AnyOrigin == nil || !s.cfg.AnyOrigin(r)):
			why = "pages of another origin may not ask"
		default:
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]any{ // who asked may be gone
			"code": http.StatusForbidden, "kind": "denied", "message": why, "hint": "ask by an address, or start the server with --allow-host or --allow-origin",
		})
	})
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return strings.ToLower(strings.TrimSuffix(host, "."))
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(hostport, "[]"), "."))
}

// knowsHost reports whether the server may be asked by a name. An address is no
// name that somebody could point elsewhere.
func (s *Sockets) knowsHost(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil {
		return true
	}
	return slices.ContainsFunc(slices.Concat(s.cfg.Hosts, s.names), func(known string) bool {
		if below, all := strings.CutPrefix(known, "*"); all {
			return strings.HasPrefix(below, ".") && strings.HasSuffix(host, strings.ToLower(below)) && len(host) > len(below)
		}
		return strings.EqualFold(known, host)
	})
}

// knowsOrigin reports whether a request comes from no page, from one of this
// server, or from one that may ask.
func (s *Sockets) knowsOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return r.Header.Get("Sec-Fetch-Site") != "cross-site"
	}
	if len(origins) > 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, r.Host) || slices.Contains(s.cfg.Origins, origins[0])
}
