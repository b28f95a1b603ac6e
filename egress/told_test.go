package egress_test

import (
	"bufio"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/sandbox"
)

// TestTold counts what is too much to be told.
func TestTold(t *testing.T) {
	t.Parallel()
	o := &outside{}
	w, proxy := o.proxy(t, allow("a.test"))
	for range sandbox.MaxConnections + 3 {
		say(t, proxy, "CONNECT b.test:443 HTTP/1.1\r\n\r\n")
	}
	told, more := w.Connections()
	for range 6000 { // each is told once it has ended
		if told, more = w.Connections(); len(told)+more >= sandbox.MaxConnections+3 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(told) != sandbox.MaxConnections || more != 3 {
		t.Errorf("%d and %d", len(told), more)
	}
}

// TestToldInOrder tells of what began first before what ended first.
func TestToldInOrder(t *testing.T) {
	t.Parallel()
	o, port, network := here(t, httptest.NewServer(&seen{}))
	w, proxy := o.proxy(t, network)
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "CONNECT a.test:"+port+" HTTP/1.1\r\n\r\n")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	say(t, proxy, "CONNECT later.test:443 HTTP/1.1\r\n\r\n")
	until(t, w, 1)
	_ = c.Close()
	if told := until(t, w, 2); told[0].Host != "a.test" || told[1].Host != "later.test" {
		t.Errorf("%+v", told)
	}
}
