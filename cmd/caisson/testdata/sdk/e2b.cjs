// Drives sandboxes with E2B's own SDK, unmodified: all that it takes are two
// addresses and a key. Each step that holds is named on a line of its own.
const assert = require('node:assert/strict')
const http = require('node:http')
const zlib = require('node:zlib')
const { Sandbox, CommandExitError, NotFoundError, FileNotFoundError } = require(process.env.E2B_SDK || 'e2b')

// A server in a sandbox: it says what it was asked, and over a WebSocket repeats one
// short message in capitals.
const server = `
import base64, hashlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get("Sec-WebSocket-Key")
        if key:
            return self.shout(key)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = f"{self.command} {self.path} {self.headers['Host']} {self.headers.get('Authorization', '')} ".encode() + body
        self.send_response(201)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Set-Cookie", "seen=yes; Path=/; Domain=localhost")
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def shout(self, key):
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.wfile.write(f"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: {accept}\\r\\n\\r\\n".encode())
        size = self.rfile.read(2)[1] & 127
        mask, said = self.rfile.read(4), self.rfile.read(size)
        said = bytes(b ^ mask[i % 4] for i, b in enumerate(said)).upper()
        self.wfile.write(bytes([0x81, len(said)]) + said)
        self.close_connection = True

ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
`

// shout sends a short text over a WebSocket, and resolves to the answer.
const shout = (port, host, text) => new Promise((done, failed) => {
  const headers = { Host: host, Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13, 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  const req = http.request({ host: '127.0.0.1', port, path: '/ws', headers })
  req.on('error', failed).on('response', (res) => failed(new Error(`${res.statusCode} in place of a WebSocket`)))
  req.on('upgrade', (res, socket, head) => {
    assert.equal(res.headers['sec-websocket-accept'], 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]))
    let got = head
    socket.on('data', (b) => { got = Buffer.concat([got, b]) }).on('error', failed)
    socket.on('end', () => { done(got.subarray(2).toString()); socket.end() })
  })
  req.end()
})

const steps = {
  async commands(sbx) {
    const seen = []
    const r = await sbx.commands.run('echo out; echo err >&2; echo $GREETING $MORE; pwd; whoami; echo $USER $LOGNAME; exit 0', { envs: { MORE: 'more' }, onStdout: (s) => { seen.push(s) } })
    assert.equal(r.stdout, 'out\nhello more\n/workspace\nuser\nuser user\n')
    assert.equal(r.stderr, 'err\n')
    assert.equal(seen.join(''), r.stdout)
    await assert.rejects(sbx.commands.run('echo gone >&2; exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3 && e.stderr === 'gone\n' && e.error === 'exit status 3')
    for (const [cwd, at] of [['/tmp', '/tmp'], ['/', '/'], ['/usr/lib/../bin', '/usr/bin'], ['~', '/workspace']]) assert.equal((await sbx.commands.run('pwd', { cwd })).stdout, `${at}\n`)
    await assert.rejects(sbx.commands.run('pwd', { cwd: '/no/such' }), /cwd '\/no\/such' does not exist/)
    assert.equal((await sbx.commands.run('cat; echo end')).stdout, 'end\n')
  },
  async background(sbx) {
    const h = await sbx.commands.run('read line; echo "got $line"; cat; echo $$ >&2; sleep 600', { background: true, stdin: true })
    await h.sendStdin('one\n')
    await h.sendStdin('two\n')
    await h.closeStdin()
    while (!h.stderr.endsWith('\n')) await new Promise((next) => setImmediate(next))
    assert.equal(h.stdout, 'got one\ntwo\n')
    assert.equal(Number(h.stderr), h.pid)
    const listed = (await sbx.commands.list()).find((p) => p.pid === h.pid)
    assert.equal(listed.cmd, '/bin/bash')
    await h.disconnect()
    const again = await sbx.commands.connect(h.pid)
    assert.equal(again.pid, h.pid)
    assert.equal(await again.kill(), true)
    await assert.rejects(again.wait(), (e) => e instanceof CommandExitError && /killed/.test(e.error))
    assert.equal(await sbx.commands.kill(h.pid), false)
    assert.deepEqual(await sbx.commands.list(), [])
  },
  async timeouts(sbx) {
    await assert.rejects(sbx.commands.run('echo begun > /tmp/begun; sleep 600', { timeoutMs: 3000 }), /deadline_exceeded/)
    while ((await sbx.commands.list()).length > 0) await new Promise((next) => setImmediate(next))
    const left = await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await left.disconnect()
    assert.equal((await sbx.commands.list()).length, 1)
    await sbx.commands.kill(left.pid)
  },
  async output(sbx) {
    for (const size of [128 * 1024, 64 * 1024 * 1024]) {
      const r = await sbx.commands.run(`head -c ${size} /dev/zero | tr '\\0' x`, { timeoutMs: 0 })
      assert.equal(r.stdout.length, size)
    }
  },
  async denied(sbx) {
    await assert.rejects(sbx.commands.run('rm -rf /'), (e) => /permission_denied/.test(e.message) && /SH|rm|delet/i.test(e.message))
    await assert.rejects(sbx.commands.run('true', { user: 'root' }), /permission_denied|root/)
    // What is refused to start while the command runs ends it so, after what it had said.
    let said = ''
    await assert.rejects(sbx.commands.run('echo up; awk -v c="rm -rf" \'BEGIN { system(c " /"); print "on" }\'; echo on', { onStdout: (s) => { said += s } }), (e) => /permission_denied/.test(e.message) && /SBX-[A-Z]+-\d+/.test(e.message))
    assert.equal(said, 'up\n')
    // What is named by the home folder is the workspace's.
    await sbx.files.write('/home/user/evil.py', "import shutil\nshutil.rmtree('/')\n")
    await sbx.files.write('/home/user/sub/mild.py', "import os; print(os.path.exists('/home/user/evil.py'), open('/home/user/evil.py').read()[:6])")
    for (const command of ['python3 evil.py', 'python3 /home/user/evil.py', 'cd /home/user && python3 evil.py', 'cd /home/user/sub && python3 ../evil.py']) await assert.rejects(sbx.commands.run(command), /permission_denied/)
    await assert.rejects(sbx.commands.run('python3 evil.py', { cwd: '/home/user' }), /permission_denied/)
    assert.equal((await sbx.commands.run('cd /home/user/sub && python3 mild.py && python3 /home/user/sub/mild.py && ls -d /home/user/*.py')).stdout, 'True import\nTrue import\n/home/user/evil.py\n')
    await assert.rejects(sbx.commands.run('/usr/local/bin/sudo true'), (e) => /no root/.test(e.stderr) || /permission_denied/.test(e.message))
    // A program of the workspace is judged, and held to that.
    await sbx.files.write('hello.py', 'print(6 * 7)')
    assert.equal((await sbx.commands.run('python3 hello.py')).stdout, '42\n')
    const held = await sbx.commands.run('echo up; while [ ! -e go ]; do sleep 0.05; done; python3 hello.py', { background: true, timeoutMs: 0 })
    while (held.stdout !== 'up\n') await new Promise((next) => setImmediate(next))
    await sbx.files.write('hello.py', 'print("another")')
    await assert.rejects(held.wait(), (e) => e instanceof CommandExitError && !/another/.test(e.stdout))
  },
  async asked(sbx) {
    const v1 = async (path, body) => {
      const r = await fetch(`${process.env.E2B_API_URL}/v1/approvals${path}`, { method: body ? 'POST' : 'GET', body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${process.env.APPROVER_KEY}` } })
      assert.ok(r.ok, await r.clone().text())
      return r.json()
    }
    const pending = async (command) => {
      for (;;) {
        const found = (await v1('?state=pending')).items.find((a) => a.question.command.at(-1) === command)
        if (found) return found.id
        await new Promise((next) => setTimeout(next, 100))
      }
    }
    // An answer that comes after the client would have given up on a start.
    const asks = (n) => `cat /home/other/${n} 2>/dev/null; echo done ${n}; cat`
    const patience = { requestTimeoutMs: 15_000, timeoutMs: 0 }
    const both = await Promise.all([1, 2].map((n) => sbx.commands.run(asks(n), { ...patience, background: true, stdin: true })))
    const ids = await Promise.all([1, 2].map((n) => pending(asks(n))))
    await new Promise((next) => setTimeout(next, 16_000))
    await v1(`/${ids[0]}/answer`, { approve: true })
    await v1(`/${ids[1]}/answer`, { approve: false, note: 'not on a Friday' })
    await assert.rejects(both[1].wait(), (e) => /permission_denied/.test(e.message) && /not on a Friday/.test(e.message) && /SBX-[A-Z]+-\d+/.test(e.message))
    while (both[0].stdout !== 'done 1\n') await new Promise((next) => setImmediate(next))
    await both[0].sendStdin('more\n')
    while (both[0].stdout !== 'done 1\nmore\n') await new Promise((next) => setImmediate(next))
    const again = await sbx.commands.connect(both[0].pid)
    await again.disconnect()
    assert.equal(await both[0].kill(), true)
    await assert.rejects(both[0].wait(), (e) => e instanceof CommandExitError && /killed/.test(e.error))
    // What waits can be killed: nobody is asked any more.
    const killed = await sbx.commands.run(asks(3), { ...patience, background: true })
    const id = await pending(asks(3))
    assert.equal(await killed.kill(), true)
    await assert.rejects(killed.wait(), (e) => e instanceof CommandExitError && /killed/.test(e.error))
    while ((await v1(`/${id}`)).state !== 'withdrawn') await new Promise((next) => setTimeout(next, 100))
  },
  async files(sbx) {
    const made = await sbx.files.write('a/b.txt', 'text')
    assert.deepEqual([made.name, made.path, made.type], ['b.txt', '/home/user/a/b.txt', 'file'])
    assert.equal(await sbx.files.read('/home/user/a/b.txt'), 'text')
    const both = await sbx.files.write([{ path: '/tmp/x', data: 'x' }, { path: '/home/user/ä y', data: new Blob(['yy']) }])
    assert.deepEqual(both.map((f) => f.path), ['/tmp/x', '/home/user/ä y'])
    assert.equal((await sbx.commands.run('cat "ä y" /tmp/x a/b.txt')).stdout, 'yyxtext')
    await sbx.files.write('empty', '')
    assert.equal(await sbx.files.read('empty'), '')
    assert.equal((await sbx.files.read('empty', { format: 'bytes' })).length, 0)
    const large = new Uint8Array(20 * 1024 * 1024).map((_, i) => (i * 7) >> 3)
    for (const o of [{}, { useOctetStream: true }, { gzip: true }]) {
      await sbx.files.write('large', large.buffer, o)
      assert.ok(Buffer.from(large).equals(await sbx.files.read('large', { format: 'bytes', gzip: o.gzip })))
    }
    const info = await sbx.files.getInfo('a/b.txt')
    assert.deepEqual([info.name, info.type, info.size, info.permissions, info.owner, info.path], ['b.txt', 'file', 4, '-rw-r--r--', 'user', '/home/user/a/b.txt'])
    assert.ok(info.modifiedTime instanceof Date)
    assert.equal(await sbx.files.makeDir('dir/deep'), true)
    assert.equal(await sbx.files.makeDir('dir/deep'), false)
    await sbx.files.write('dir/deep/z', 'z')
    const names = async (path, depth) => (await sbx.files.list(path, { depth })).map((e) => e.path).sort()
    assert.deepEqual(await names('dir', 1), ['/home/user/dir/deep'])
    // The folder where commands begin has many names.
    for (const home of ['.', '', '~', '/home/user', '/home/user/', '/workspace']) {
      assert.ok((await names(home, 1)).includes('/home/user/dir'), home)
      assert.deepEqual([(await sbx.files.getInfo(home)).path, await sbx.files.exists(home)], ['/home/user', true])
      assert.equal(await sbx.files.makeDir(home), false)
    }
    await assert.rejects(sbx.files.remove('.'), /invalid_argument|workspace/)
    assert.deepEqual(await names('dir', 2), ['/home/user/dir/deep', '/home/user/dir/deep/z'])
    assert.equal((await sbx.files.rename('dir/deep/z', 'dir/w')).path, '/home/user/dir/w')
    assert.equal(await sbx.files.exists('dir/deep/z'), false)
    assert.equal(await sbx.files.exists('dir/w'), true)
    await sbx.files.remove('dir')
    assert.equal(await sbx.files.exists('dir'), false)
    await assert.rejects(sbx.files.read('none'), (e) => e instanceof FileNotFoundError)
    await assert.rejects(sbx.files.list('none'), (e) => e instanceof FileNotFoundError)
    await assert.rejects(sbx.files.write('/etc/passwd', 'x'), /outside/)
    const cut = { method: 'POST', headers: { 'E2b-Sandbox-Id': sbx.sandboxId, 'X-Access-Token': sbx.envdAccessToken, 'Content-Type': 'application/octet-stream', 'Content-Encoding': 'gzip' } }
    assert.equal((await fetch(process.env.E2B_SANDBOX_URL + '/files?path=cut', { ...cut, body: zlib.gzipSync('cut off').subarray(0, 12) })).status, 400)
    assert.equal(await sbx.files.exists('cut'), false)
  },
  async metadata(sbx) {
    const of = async (path) => (await sbx.files.getInfo(path)).metadata
    for (const [how, o] of [['form', {}], ['stream', { useOctetStream: true }]]) {
      const made = await sbx.files.write(`meta/${how}`, 'x', { metadata: { Author: 'ann', 'b.c-d': 'a b=~' }, ...o })
      assert.deepEqual(made.metadata, { author: 'ann', 'b.c-d': 'a b=~' })
      assert.deepEqual(await of(`meta/${how}`), { author: 'ann', 'b.c-d': 'a b=~' })
    }
    const both = await sbx.files.write([{ path: '/tmp/m1', data: '1' }, { path: '/home/user/m2', data: '2' }], { metadata: { n: 'v' } })
    assert.deepEqual(both.map((f) => f.metadata), [{ n: 'v' }, { n: 'v' }])
    assert.deepEqual(await of('/tmp/m1'), { n: 'v' })
    assert.deepEqual((await sbx.files.rename('m2', 'm3')).metadata, { n: 'v' })
    assert.deepEqual((await sbx.files.list('meta')).map((e) => e.metadata.author), ['ann', 'ann'])
    // What programs set is told too, of this namespace alone; a program sees what was sent.
    assert.equal((await sbx.commands.run(`python3 -c "import os; print(os.getxattr('m3', 'user.e2b.n').decode()); os.setxattr('m3', 'user.e2b.n', b'w'); os.setxattr('m3', 'user.other', b'x')"`)).stdout, 'v\n')
    assert.deepEqual(await of('m3'), { n: 'w' })
    // A file that is written anew has what is sent with it alone.
    await sbx.files.write('m3', 'anew', { metadata: { other: '1' } })
    assert.deepEqual(await of('m3'), { other: '1' })
    await sbx.files.write('m3', 'anew')
    assert.equal(await of('m3'), undefined)
    assert.equal((await sbx.commands.run(`python3 -c "import os; print(os.listxattr('m3'))"`)).stdout, '[]\n')
    await assert.rejects(sbx.files.write('m3', 'x', { metadata: { k: 'v'.repeat(4096) } }), /4096 bytes/)
    await assert.rejects(sbx.files.write('m3', 'x', { metadata: { ['k'.repeat(247)]: '' } }), /246 bytes/)
    assert.equal(await sbx.files.read('m3'), 'anew')
  },
  async signed(sbx) {
    await sbx.files.write('signed', 'by nobody')
    const down = await sbx.downloadUrl('signed')
    assert.equal(await (await fetch(down)).text(), 'by nobody')
    assert.equal((await fetch(down, { headers: { Range: 'bytes=3-' } })).status, 206)
    assert.equal(await (await fetch(down, { headers: { Range: 'bytes=3-' } })).text(), 'nobody')
    const form = new FormData()
    form.append('file', new Blob(['by me']), 'ignored')
    assert.equal((await fetch(await sbx.uploadUrl('signed', { useSignatureExpiration: 60 }), { method: 'POST', body: form })).status, 200)
    assert.equal(await sbx.files.read('signed'), 'by me')
    assert.equal((await fetch(await sbx.downloadUrl('signed', { useSignatureExpiration: -60 }))).status, 401)
    assert.equal((await fetch(down.replace('path=signed', 'path=other'))).status, 401)
    assert.equal((await fetch(down, { method: 'POST', body: form })).status, 401)
  },
  async watch(sbx) {
    await sbx.files.makeDir('watched')
    const seen = new Set()
    let ended
    const over = new Promise((done) => { ended = done })
    await (await sbx.files.watchDir('/home/user', () => {})).stop()
    const h = await sbx.files.watchDir('watched', (e) => { seen.add(e.type + ' ' + e.name) }, { recursive: true, timeoutMs: 0, onExit: ended })
    await sbx.commands.run('cd watched; mkdir sub; echo 1 > one; mv one two; chmod 600 two; rm two; while ! [ -e sub/late ]; do echo > sub/early; [ -e ../stop ] && break; sleep 0.1; rm -f sub/early; done & disown')
    while (!['create one', 'write one', 'rename one', 'chmod two', 'remove two', 'create sub', 'create sub/early'].every((e) => seen.has(e))) await new Promise((next) => setTimeout(next, 50))
    await sbx.files.write('stop', '')
    await h.stop()
    await over
    await assert.rejects(sbx.files.watchDir('none', () => {}), (e) => e instanceof FileNotFoundError)
  },
  async pty(sbx) {
    let text = ''
    const h = await sbx.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (b) => { text += Buffer.from(b).toString() } })
    const until = async (re) => { while (!re.test(text)) await new Promise((next) => setTimeout(next, 20)) }
    await sbx.pty.sendInput(h.pid, Buffer.from('echo si$((1))e; stty size\n'))
    await until(/si1e\r?\n24 80/)
    await sbx.pty.resize(h.pid, { cols: 100, rows: 30 })
    await sbx.pty.sendInput(h.pid, Buffer.from('stty size\n'))
    await until(/30 100/)
    let more = ''
    const other = await sbx.pty.connect(h.pid, { timeoutMs: 0, onData: (b) => { more += Buffer.from(b).toString() } })
    await sbx.pty.sendInput(h.pid, Buffer.from('echo th$((2))re\n'))
    while (!/th2re/.test(more)) await new Promise((next) => setTimeout(next, 20))
    await sbx.pty.sendInput(h.pid, Buffer.from('exit 7\n'))
    for (const one of [h, other]) await assert.rejects(one.wait(), (e) => e.exitCode === 7)
    assert.equal(await sbx.pty.kill(h.pid), false)
  },
  async info(sbx) {
    const i = await sbx.getInfo()
    assert.deepEqual([i.sandboxId, i.templateId, i.state, i.metadata], [sbx.sandboxId, 'base', 'running', { who: 'me', 'a.b': 'x =&%ä' }])
    assert.ok(i.endAt > i.startedAt)
    await sbx.setTimeout(3600_000)
    const later = (await sbx.getInfo()).endAt
    assert.ok(later - i.endAt > 600_000)
    await sbx.connect({ timeoutMs: 60_000 })
    assert.equal(+(await sbx.getInfo()).endAt, +later)
    await sbx.setTimeout(600_000)
    assert.ok((await sbx.getInfo()).endAt < later)
    assert.equal(await sbx.isRunning(), true)
    const m = await sbx.getMetrics()
    assert.ok(m.length === 1 && m[0].memTotal > 0 && m[0].memUsed > 0)
    const same = await Sandbox.connect(sbx.sandboxId)
    assert.equal((await same.commands.run('echo same')).stdout, 'same\n')
  },
  async lists(sbx) {
    const made = []
    for (const n of ['1', '2', '3']) made.push(await Sandbox.create('shell', { metadata: { group: 'of three', n } }))
    const all = async (opts) => {
      const pages = Sandbox.list(opts)
      const ids = []
      while (pages.hasNext) ids.push((await pages.nextItems()).map((i) => i.sandboxId))
      return ids
    }
    const query = { metadata: { group: 'of three' } }
    const newest = made.map((s) => s.sandboxId).reverse()
    assert.deepEqual(await all({ query }), [newest])
    assert.deepEqual(await all({ query, limit: 2 }), [newest.slice(0, 2), newest.slice(2)])
    assert.deepEqual(await all({ query, order: 'asc', limit: 2 }), [newest.slice(1).reverse(), newest.slice(0, 1)])
    assert.deepEqual(await all({ query: { metadata: { 'a.b': 'x =&%ä' } } }), [[sbx.sandboxId]])
    assert.deepEqual(await all({ query: { template: 'base', state: ['running'] } }), [[sbx.sandboxId]])
    for (const s of made) assert.equal(await s.kill(), true)
    assert.deepEqual(await all({ query }), [[]])
  },
  async others(sbx) {
    const as = { apiKey: process.env.OTHER_KEY }
    assert.deepEqual(await Sandbox.list(as).nextItems(), [])
    await assert.rejects(Sandbox.connect(sbx.sandboxId, as), (e) => e.name === 'SandboxNotFoundError')
    assert.equal(await Sandbox.kill(sbx.sandboxId, as), false)
    const theirs = await Sandbox.create('shell', as)
    const headers = { 'E2b-Sandbox-Id': sbx.sandboxId, 'X-Access-Token': theirs.envdAccessToken }
    assert.equal((await fetch(process.env.E2B_API_URL + '/files?path=x', { headers })).status, 401)
    assert.equal((await fetch(process.env.E2B_API_URL + '/files?path=x', { headers: { 'E2b-Sandbox-Id': sbx.sandboxId, 'X-API-Key': as.apiKey } })).status, 502)
    assert.equal(await Sandbox.kill(theirs.sandboxId, as), true)
  },
  async previews(sbx) {
    await sbx.files.write('server.py', server)
    const h = await sbx.commands.run('python3 server.py', { background: true, timeoutMs: 0 })
    const host = sbx.getHost(8000)
    const { port } = new URL(process.env.E2B_SANDBOX_URL)
    assert.match(host, new RegExp(`^8000-${sbx.sandboxId}\\.[0-9a-z]{63}\\.localhost:${port}$`))
    // What a browser does by itself: names below localhost are this machine.
    const ask = (host, { path = '/', body = '', ...opts } = {}) => new Promise((done, failed) => {
      const headers = { Host: host, 'Content-Length': Buffer.byteLength(body), ...opts.headers }
      http.request({ host: '127.0.0.1', port, path, method: opts.method ?? 'GET', headers }, (res) => {
        let text = ''
        res.on('data', (b) => { text += b })
        res.on('end', () => done({ status: res.statusCode, headers: res.headers, text }))
      }).on('error', failed).end(body)
    })
    while ((await ask(host)).status === 502) await new Promise((next) => setTimeout(next, 50))
    const posted = await ask(host, { path: '/a%2Fb?q=1', method: 'POST', body: 'sent', headers: { Authorization: 'Bearer of the app', Origin: 'https://elsewhere.example' } })
    assert.deepEqual([posted.status, posted.text, posted.headers['set-cookie']], [201, `POST /a%2Fb?q=1 ${host} Bearer of the app sent`, ['seen=yes; Path=/']])
    for (const path of ['/healthz', '/v2/sandboxes', '/files?path=x', '/v1/sessions']) assert.equal((await ask(host, { path })).text, `GET ${path} ${host}  `)
    assert.equal(await shout(port, host, 'over a socket'), 'OVER A SOCKET')
    // Another port, a name without the pass, another's pass.
    assert.equal((await ask(sbx.getHost(8001))).status, 502)
    const bare = `8000-${sbx.sandboxId}.localhost:${port}`
    assert.equal((await ask(bare)).status, 401)
    assert.equal((await ask(bare, { headers: { 'X-API-Key': process.env.E2B_API_KEY } })).status, 401)
    assert.equal((await ask(bare, { headers: { 'E2b-Traffic-Access-Token': sbx.trafficAccessToken } })).text, `GET / ${bare}  `)
    const other = await Sandbox.create('shell', { network: { allowPublicTraffic: false } })
    assert.equal(other.getHost(8000), `8000-${other.sandboxId}.localhost:${port}`)
    assert.equal((await ask(bare, { headers: { 'E2b-Traffic-Access-Token': other.trafficAccessToken } })).status, 401)
    assert.equal((await ask(host.replace(sbx.sandboxId, other.sandboxId))).status, 401)
    assert.equal(await other.kill(), true)
    await h.kill()
    await assert.rejects(h.wait())
    assert.equal((await ask(host)).status, 502)
  },
  async pause(sbx) {
    const h = await sbx.commands.run('n=0; while read x; do n=$((n+x)); echo $n; done', { background: true, stdin: true, timeoutMs: 0 })
    await h.sendStdin('40\n')
    while (h.stdout !== '40\n') await new Promise((next) => setImmediate(next))
    assert.equal(await sbx.pause(), true)
    assert.equal(await sbx.pause(), false)
    assert.equal((await sbx.getInfo()).state, 'paused')
    assert.equal(await sbx.isRunning(), false)
    await sbx.connect()
    assert.equal(await sbx.isRunning(), true)
    await h.sendStdin('2\n')
    while (h.stdout !== '40\n42\n') await new Promise((next) => setImmediate(next))
    await h.kill()
    await assert.rejects(h.wait())
  },
  async snapshots(sbx) {
    const as = { apiKey: process.env.OTHER_KEY }
    // The origin goes on, with what runs in it and what it wrote after.
    const origin = await Sandbox.create({ envs: { KEPT: 'kept', OVER: 'old' }, metadata: { group: 'kept' } })
    await origin.files.write('a/state', 'one')
    await origin.commands.run('ln -s a/state soft; chmod 600 a/state')
    const h = await origin.commands.run('n=0; while read x; do n=$((n+x)); echo $n; done', { background: true, stdin: true, timeoutMs: 0 })
    await h.sendStdin('40\n')
    while (h.stdout !== '40\n') await new Promise((next) => setImmediate(next))
    const snap = await origin.createSnapshot()
    assert.deepEqual(snap.names, [])
    await h.sendStdin('2\n')
    while (h.stdout !== '40\n42\n') await new Promise((next) => setImmediate(next))
    await origin.files.write('a/state', 'two')
    const named = await origin.createSnapshot({ name: 'a-name' })
    assert.deepEqual(named.names, ['a-name'])
    const made = await Sandbox.create(snap.snapshotId, { envs: { OVER: 'new' }, metadata: { n: '1' } })
    assert.equal((await made.commands.run('cat a/state soft; stat -c %a a/state; echo $KEPT $OVER')).stdout, 'oneone600\nkept new\n')
    assert.deepEqual(await made.commands.list(), [])
    const i = await made.getInfo()
    assert.deepEqual([i.templateId, i.metadata, i.state], [snap.snapshotId, { n: '1' }, 'running'])
    await made.files.write('a/state', 'of its own')
    const second = await Sandbox.create(named.snapshotId)
    assert.deepEqual(await Promise.all([origin, made, second].map((s) => s.files.read('a/state'))), ['two', 'of its own', 'two'])
    // They are lists of their own.
    const all = async (opts) => {
      const pages = Sandbox.listSnapshots(opts)
      const ids = []
      while (pages.hasNext) ids.push((await pages.nextItems()).map((s) => s.snapshotId))
      return ids
    }
    const ids = [named.snapshotId, snap.snapshotId]
    assert.deepEqual(await all(), [ids])
    assert.deepEqual(await all({ limit: 1 }), [[ids[0]], [ids[1]]])
    assert.deepEqual(await all({ name: 'a-name' }), [[named.snapshotId]])
    assert.deepEqual(await all({ sandboxId: made.sandboxId }), [[]])
    assert.deepEqual(await origin.listSnapshots().nextItems(), [named, snap])
    assert.ok((await Sandbox.list().nextItems()).every((s) => !ids.includes(s.sandboxId)))
    await assert.rejects(Sandbox.connect(snap.snapshotId), (e) => e.name === 'SandboxNotFoundError')
    // Nobody else has them.
    assert.deepEqual(await all(as), [[]])
    for (const id of ids) {
      await assert.rejects(Sandbox.create(id, as), (e) => /404/.test(e.message) && e.message.includes(id))
      assert.equal(await Sandbox.deleteSnapshot(id, as), false)
    }
    await assert.rejects(Sandbox.createSnapshot(origin.sandboxId, as), (e) => e.name === 'SandboxNotFoundError')
    // One of the same name takes its place; what was made of one goes on without it.
    await made.createSnapshot({ name: 'a-name' })
    assert.deepEqual(await all(), [ids])
    const third = await Sandbox.create('a-name')
    assert.equal(await third.files.read('a/state'), 'of its own')
    await origin.kill()
    for (const id of ids) {
      assert.equal(await Sandbox.deleteSnapshot(id), true)
      assert.equal(await Sandbox.deleteSnapshot(id), false)
      await assert.rejects(Sandbox.create(id), /404/)
    }
    assert.deepEqual(await all(), [[]])
    await third.commands.run('sync; cat a/state; echo more > a/more')
    for (const s of [made, second, third]) assert.equal(await s.kill(), true)
  },
  async forks(sbx) {
    const h = await sbx.commands.run('read x; echo $x', { background: true, stdin: true, timeoutMs: 0 })
    await sbx.files.write('forked', 'before')
    const forks = await sbx.fork({ count: 2 })
    assert.ok(forks.every((f) => f instanceof Sandbox) && forks.length === 2)
    await h.sendStdin('goes on\n')
    assert.equal((await h.wait()).stdout, 'goes on\n')
    await forks[0].files.write('forked', 'after')
    assert.deepEqual(await Promise.all([sbx, ...forks].map((s) => s.files.read('forked'))), ['before', 'after', 'before'])
    const i = await forks[1].getInfo()
    assert.deepEqual([i.templateId, i.metadata.who], ['base', 'me'])
    assert.equal((await forks[1].commands.run('echo $GREETING')).stdout, 'hello\n')
    await assert.rejects(sbx.fork({ count: 21 }), /400/)
    await assert.rejects(Sandbox.fork(sbx.sandboxId, { apiKey: process.env.OTHER_KEY }), (e) => e.name === 'SandboxNotFoundError')
    for (const f of forks) assert.equal(await f.kill(), true)
  },
  async rests(sbx) {
    const one = await Sandbox.create({ lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } })
    await one.files.write('kept', 'kept')
    const rested = async () => {
      assert.equal((await one.getInfo()).state, 'paused')
      assert.equal(await one.isRunning(), false)
      await assert.rejects(one.files.read('kept'))
      assert.deepEqual((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).map((s) => s.sandboxId), [one.sandboxId])
      await Sandbox.connect(one.sandboxId)
      assert.equal((await one.commands.run('cat kept; cat /proc/[0-9]*/comm | grep -c sleep || true')).stdout, 'kept0\n')
    }
    await one.commands.run('sleep 600', { background: true, timeoutMs: 0 })
    assert.equal(await one.pause({ keepMemory: false }), true)
    assert.equal(await one.pause({ keepMemory: false }), false)
    await rested()
    // What was kept is let go of.
    await one.commands.run('sleep 600', { background: true, timeoutMs: 0 })
    await one.pause()
    await Sandbox.connect(one.sandboxId, { onResume: 'reboot' })
    assert.equal((await one.commands.run('cat kept; cat /proc/[0-9]*/comm | grep -c sleep || true')).stdout, 'kept0\n')
    // By its own time.
    await one.setTimeout(100)
    while ((await one.getInfo()).state !== 'paused') await new Promise((next) => setTimeout(next, 50))
    await rested()
    await one.pause({ keepMemory: false })
    assert.equal(await one.kill(), true)
  },
  async killed(sbx) {
    const h = await sbx.commands.run('sleep 600', { background: true, timeoutMs: 0 })
    const waited = assert.rejects(h.wait(), (e) => e.name === 'TimeoutError')
    assert.equal(await sbx.kill(), true)
    await waited
    assert.equal(await sbx.kill(), false)
    assert.equal(await sbx.isRunning(), false)
    await assert.rejects(sbx.commands.run('true'), (e) => e.name === 'TimeoutError' || e instanceof NotFoundError || /not running/.test(e.message))
    await assert.rejects(Sandbox.connect(sbx.sandboxId), (e) => e.name === 'SandboxNotFoundError')
    await assert.rejects(Sandbox.create('no-such-template'), /no-such-template/)
    await assert.rejects(Sandbox.create({ apiKey: 'wrong' }), (e) => e.name === 'AuthenticationError')
    const brief = await Sandbox.create({ timeoutMs: 15_000 })
    while (await brief.isRunning()) await new Promise((next) => setTimeout(next, 50))
    while ((await Sandbox.list().nextItems()).length > 0) await new Promise((next) => setTimeout(next, 50))
  },
}

async function main(names) {
  const sbx = await Sandbox.create({ envs: { GREETING: 'hello' }, metadata: { who: 'me', 'a.b': 'x =&%ä' }, timeoutMs: 600_000 })
  for (const name of names.length ? names : Object.keys(steps)) {
    await steps[name](sbx)
    console.log(name)
  }
}

main(process.argv.slice(2)).then(() => process.exit(0), (e) => { console.error(e); process.exit(1) })
