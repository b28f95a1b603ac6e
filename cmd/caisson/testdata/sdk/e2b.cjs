// Drives sandboxes with E2B's own SDK, unmodified: all that it takes are two
// addresses and a key. Each step that holds is named on a line of its own.
const assert = require('node:assert/strict')
const { Sandbox, CommandExitError, NotFoundError, FileNotFoundError } = require('e2b')

const steps = {
  async commands(sbx) {
    const seen = []
    const r = await sbx.commands.run('echo out; echo err >&2; echo $GREETING $MORE; pwd; whoami >/dev/null; exit 0', { envs: { MORE: 'more' }, onStdout: (s) => { seen.push(s) } })
    assert.equal(r.stdout, 'out\nhello more\n/workspace\n')
    assert.equal(r.stderr, 'err\n')
    assert.equal(seen.join(''), r.stdout)
    await assert.rejects(sbx.commands.run('echo gone >&2; exit 3'), (e) => e instanceof CommandExitError && e.exitCode === 3 && e.stderr === 'gone\n' && e.error === 'exit status 3')
    assert.equal((await sbx.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
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
    assert.deepEqual(await names('dir', 2), ['/home/user/dir/deep', '/home/user/dir/deep/z'])
    assert.equal((await sbx.files.rename('dir/deep/z', 'dir/w')).path, '/home/user/dir/w')
    assert.equal(await sbx.files.exists('dir/deep/z'), false)
    assert.equal(await sbx.files.exists('dir/w'), true)
    await sbx.files.remove('dir')
    assert.equal(await sbx.files.exists('dir'), false)
    await assert.rejects(sbx.files.read('none'), (e) => e instanceof FileNotFoundError)
    await assert.rejects(sbx.files.list('none'), (e) => e instanceof FileNotFoundError)
    await assert.rejects(sbx.files.write('/etc/passwd', 'x'), /outside/)
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
    const brief = await Sandbox.create({ timeoutMs: 5000 })
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
