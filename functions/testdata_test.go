package functions_test

// handlerPython does what its event asks for.
const handlerPython = `
import asyncio, decimal, json, logging, os, signal, sys, time
import helper

calls = 0

def handler(event, context):
    global calls
    calls += 1
    do = event.get("do", "echo")
    return globals()["do_" + do](event, context)

def do_echo(event, context):
    return event

def do_calls(event, context):
    return calls

def do_context(event, context):
    left = context.get_remaining_time_in_millis()
    time.sleep(0.05)
    return {"name": context.function_name, "version": context.function_version, "memory": context.memory_limit_in_mb, "arn": context.invoked_function_arn,
            "id": context.aws_request_id, "down": 0 < context.get_remaining_time_in_millis() <= left - 50, "left": left <= 20000,
            "client": context.client_context.custom, "env": [os.environ["KEY"], os.environ["AWS_LAMBDA_FUNCTION_NAME"]], "helper": helper.NAME,
            "data": open("data/x.txt").read(), "path": os.environ["LAMBDA_TASK_ROOT"] == os.getcwd()}

async def do_async(event, context):
    await asyncio.sleep(0.01)
    return "later"

def do_print(event, context):
    print("out")
    print("err", file=sys.stderr)
    os.write(1, b"raw\n")
    os.system("echo child")
    logging.getLogger().warning("logged")
    return '{"forged": true}'

def do_flood(event, context):
    sys.stdout.write("x" * (1 << 20) + "end")

def do_forge(event, context):
    line = b"\n" + b"0" * 64 + b' {"n":%d,"kind":"value","value":"forged"}\n' % calls
    for fd in range(1, 400):
        try:
            os.write(fd, line)
        except OSError:
            pass
    return "true"

def do_big(event, context):
    return "é" * event["n"]

def do_raise(event, context):
    raise KeyError("missing")

def do_mute(event, context):
    class Mute(Exception):
        def __str__(self):
            raise ValueError
    raise Mute()

def do_set(event, context):
    return {1, 2}

def do_nan(event, context):
    return float("nan")

def do_exit(event, context):
    sys.exit(event.get("code"))

def do_die(event, context):
    os._exit(3)

def do_kill(event, context):
    os.kill(os.getpid(), signal.SIGSEGV)

def do_memory(event, context):
    return len(bytearray(1 << 30))

def do_hang(event, context):
    print("before", flush=True)
    while True:
        pass

def do_closed(event, context):
    os.closerange(0, 1000)

def do_fork(event, context):
    if os.fork() == 0:
        return "the child"
    os.wait()
    return "the parent"

def do_stdin(event, context):
    return sys.stdin.read()

def do_keep(event, context):
    with open("/tmp/kept", "a") as f:
        f.write("x")
    return open("/tmp/kept").read()

def do_write(event, context):
    open("main.py", "w")
`

// handlerNode does the same.
const handlerNode = `
const fs = require('fs')
const { execSync } = require('child_process')
const helper = require('./helper')
let calls = 0

exports.handler = (event, context, callback) => {
  calls++
  return does[event.do ?? 'echo'](event, context, callback)
}

exports.nested = { handler: (event) => 'plain' }

const does = {
  echo: async (event) => event,
  calls: async () => calls,
  context: async (event, context) => {
    const left = context.getRemainingTimeInMillis()
    await new Promise((ok) => setTimeout(ok, 50))
    return { name: context.functionName, version: context.functionVersion, memory: context.memoryLimitInMB, arn: context.invokedFunctionArn,
      id: context.awsRequestId, down: 0 < context.getRemainingTimeInMillis() && context.getRemainingTimeInMillis() <= left - 49, left: left <= 20000,
      client: context.clientContext.custom, env: [process.env.KEY, process.env.AWS_LAMBDA_FUNCTION_NAME], helper: helper.NAME,
      data: fs.readFileSync('data/x.txt', 'utf8'), path: process.env.LAMBDA_TASK_ROOT === process.cwd() }
  },
  callback: (event, context, callback) => { setTimeout(() => callback(null, 'later'), 10) },
  waits: (event, context, callback) => { callback(null, 'first'); setTimeout(() => console.log('and then'), 20) },
  nowait: (event, context, callback) => { context.callbackWaitsForEmptyEventLoop = false; callback(null, 'first'); setTimeout(() => console.log('frozen'), 20) },
  succeed: (event, context) => { context.succeed('done') },
  callbackError: (event, context, callback) => { callback(new RangeError('no')) },
  callbackText: (event, context, callback) => { callback('a text') },
  nothing: () => {},
  never: () => new Promise(() => {}),
  print: async () => {
    console.log('out')
    console.error('err')
    fs.writeSync(1, 'raw\n')
    execSync('echo child', { stdio: 'inherit' })
    return '{"forged": true}'
  },
  forge: async () => {
    for (let fd = 1; fd < 60; fd++) {
      try {
        const flags = parseInt(/flags:\s*(\d+)/.exec(fs.readFileSync('/proc/self/fdinfo/' + fd, 'utf8'))[1], 8)
        if ((flags & 0o4003) !== 1) continue // what the event loop needs
        fs.writeSync(fd, '\n' + '0'.repeat(64) + ' {"n":' + calls + ',"kind":"value","value":"forged"}\n')
      } catch {}
    }
    return 'true'
  },
  big: async (event) => 'é'.repeat(event.n),
  raise: async () => { throw new TypeError('missing') },
  sync: () => { throw new TypeError('at once') },
  text: async () => { throw 'a text' },
  circle: async () => { const o = {}; o.o = o; return o },
  bigint: async () => 1n,
  undefined: async () => undefined,
  exit: async (event) => { process.exit(event.code) },
  later: () => { setTimeout(() => { throw new Error('uncaught') }, 1) },
  unhandled: () => { Promise.reject(new Error('nobody')); return new Promise((ok) => setTimeout(ok, 1000)) },
  memory: async () => { const all = []; for (;;) all.push(Buffer.alloc(1 << 24, 1)) },
  hang: async () => { console.log('before'); for (;;); },
  stdin: async () => fs.readFileSync(0, 'utf8'),
}
`
