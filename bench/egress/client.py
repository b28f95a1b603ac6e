import http.client, os, socket, ssl, sys, time

trusted = ssl.create_default_context(cadata=AUTHORITY)

def connect():
    proxy = os.environ.get("https_proxy")
    if proxy:
        host, port = proxy.removeprefix("http://").split(":")
        c = http.client.HTTPSConnection(host, int(port), context=trusted)
        c.set_tunnel("bench.test", PORT)
        return c
    c = http.client.HTTPSConnection("bench.test", PORT, context=trusted)
    c._create_connection = lambda *_: socket.create_connection(("127.0.0.1", PORT))
    return c

def small(c):
    c.request("GET", "/small")
    if c.getresponse().read() != b"small": raise SystemExit("another answer")

def new():
    c = connect()
    small(c)
    c.close()

def large():
    c = connect()
    c.request("GET", "/large")
    r, block, got = c.getresponse(), memoryview(bytearray(1 << 20)), 0
    while n := r.readinto(block): got += n
    c.close()
    if got != SIZE: raise SystemExit(f"{got} bytes came")

kept = connect()
small(kept)
for line in sys.stdin:
    began = time.perf_counter()
    {"kept": lambda: small(kept), "new": new, "large": large}[line.strip()]()
    print(time.perf_counter() - began, flush=True)
