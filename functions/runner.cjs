// Runs a handler of what is staged in function/ beside this file, one call after the
// other, in the convention of AWS Lambda. Calls come on what was standard input, and
// what becomes of them goes out on what was standard output, one signed line each;
// what the handler prints goes to standard error. Package functions speaks with it.
const fs = require('fs')
const path = require('path')
const { createHmac } = require('crypto')
const { pathToFileURL } = require('url')

const root = path.join(__dirname, 'function')
const calls = fs.openSync('/proc/self/fd/0', 'r')
const out = fs.openSync('/proc/self/fd/1', 'w')
const log = fs.openSync('/proc/self/fd/2', 'w')
// The lowest number that is free is what a file gets.
fs.closeSync(0)
fs.openSync('/dev/null', 'r')
fs.closeSync(1)
fs.openSync('/proc/self/fd/2', 'w')

const { stringify, parse } = JSON
const { exit } = process

// Between calls nothing else of the process goes on, as with the vendor.
const chunk = Buffer.alloc(1 << 16)
let rest = []
function readLine() {
  for (;;) {
    const last = rest[rest.length - 1]
    const end = last === undefined ? -1 : last.indexOf(10)
    if (end >= 0) {
      const line = Buffer.concat([...rest.slice(0, -1), last.subarray(0, end)]).toString()
      rest = [last.subarray(end + 1)]
      return line
    }
    const n = fs.readSync(calls, chunk)
    if (n === 0) exit(0)
    rest.push(Buffer.from(chunk.subarray(0, n)))
  }
}

const cfg = parse(readLine())
const key = Buffer.from(cfg.key, 'hex')
delete cfg.key
Object.assign(process.env, cfg.env, { LAMBDA_TASK_ROOT: root })
process.chdir(root)

function put(fd, text) {
  let data = Buffer.from(text)
  while (data.length > 0) data = data.subarray(fs.writeSync(fd, data))
}

const sign = (text) => createHmac('sha256', key).update(text).digest('hex')

// What was printed before ends at a mark.
let marks = 0
function say(text) {
  let mark = 0
  try {
    put(log, '\0' + sign('mark ' + (marks + 1)) + '\0')
    mark = ++marks
  } catch {
    // the handler has closed it
  }
  text = `{"mark":${mark},"peak":${process.resourceUsage().maxRSS * 1024},${text}}`
  put(out, '\n' + sign(text) + ' ' + text + '\n')
}

function fail(kind, type, message, stack, n = 0) {
  const stackTrace = (stack ?? []).slice(0, 100).map((l) => String(l).replaceAll('file://', '').replaceAll(root + '/', '').slice(0, 4096))
  say(`"n":${n},"kind":"${kind}","error":${stringify({ errorType: String(type), errorMessage: String(message).slice(0, 1 << 18), stackTrace })}`)
}

// failOf says what was thrown, which may be anything.
function failOf(kind, e, n, type) {
  if (e instanceof Error || (typeof e === 'object' && e !== null && typeof e.stack === 'string')) {
    fail(kind, type ?? e.name, e.message, String(e.stack ?? '').split('\n').filter((l) => !l.includes(__filename)), n)
  } else {
    fail(kind, type ?? typeof e, typeof e === 'string' ? e : stringify(e) ?? String(e), [], n)
  }
}

class Context {
  #deadline
  callbackWaitsForEmptyEventLoop = true
  constructor(call, done) {
    this.#deadline = performance.now() + call.left_ms
    this.awsRequestId = call.id
    this.functionName = cfg.function_name
    this.functionVersion = cfg.function_version
    this.memoryLimitInMB = cfg.memory_limit_in_mb
    this.invokedFunctionArn = cfg.invoked_function_arn
    this.logGroupName = cfg.log_group_name
    this.logStreamName = cfg.log_stream_name
    this.clientContext = call.client_context ?? undefined
    this.done = done
    this.succeed = (value) => done(null, value)
    this.fail = (error) => done(error ?? 'handled')
    this.getRemainingTimeInMillis = () => Math.max(0, Math.floor(this.#deadline - performance.now()))
  }
}

let current = null // the call that is under way

function answer(call, error, value) {
  if (current !== call) return // it was answered before
  current = null
  if (error !== null && error !== undefined) {
    failOf('failed', error, call.n)
  } else {
    let text
    try {
      text = stringify(value) ?? 'null'
    } catch (e) {
      fail('broken', 'Runtime.MarshalError', 'Unable to stringify response body: ' + e.message, [], call.n)
    }
    if (text !== undefined && Buffer.byteLength(text) > cfg.most) {
      fail('broken', 'Function.ResponseSizeTooLarge', `Response payload size exceeded maximum allowed payload size (${cfg.most} bytes).`, [], call.n)
    } else if (text !== undefined) {
      say(`"n":${call.n},"kind":"value","value":${text}`)
    }
  }
  setImmediate(next)
}

let handler
function next() {
  const call = (current = parse(readLine()))
  let later = null // what a callback said, until the event loop is empty
  call.empty = () => answer(call, later?.error, later?.value)
  const context = new Context(call, (error, value) => {
    if (current !== call || later !== null) return
    if (context.callbackWaitsForEmptyEventLoop) {
      later = { error, value }
    } else {
      answer(call, error, value)
    }
  })
  try {
    const value = handler(call.event, context, context.done)
    if (typeof value?.then === 'function') {
      value.then((v) => answer(call, null, v), (e) => answer(call, e ?? String(e)))
    } else if (value !== undefined && handler.length < 3 && later === null) {
      answer(call, null, value)
    }
  } catch (e) {
    answer(call, e ?? String(e))
  }
}

// The event loop is empty: whoever has not answered never will.
process.on('beforeExit', () => current?.empty())

function die(e, type) {
  failOf('ending', e, current?.n ?? 0, type)
  exit(1)
}

process.on('uncaughtException', (e) => die(e))
process.on('unhandledRejection', (e) => die(e, 'Runtime.UnhandledPromiseRejection'))

function unloaded(type, message, stack) {
  fail('ending', type, message, stack)
  exit(1)
}

async function load() {
  const dir = path.dirname(cfg.handler)
  const [name, ...names] = path.basename(cfg.handler).split('.')
  const at = path.join(dir, name)
  const file = ['.js', '.mjs', '.cjs'].map((s) => path.join(root, at + s)).find((f) => fs.existsSync(f))
  if (file === undefined) unloaded('Runtime.ImportModuleError', `Error: Cannot find module '${at}'`)
  let module
  try {
    module = await import(pathToFileURL(file).href)
  } catch (e) {
    if (e instanceof SyntaxError) unloaded('Runtime.UserCodeSyntaxError', 'SyntaxError: ' + e.message, String(e.stack).split('\n'))
    if (['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'].includes(e?.code)) unloaded('Runtime.ImportModuleError', 'Error: ' + e.message.replaceAll(root + '/', ''), String(e.stack).split('\n'))
    die(e)
  }
  const find = (from) => names.reduce((o, k) => o?.[k], from)
  handler = find(module) ?? find(module.default)
  if (typeof handler !== 'function') unloaded('Runtime.HandlerNotFound', `${cfg.handler} is undefined or not exported`)
  say('"kind":"ready"')
  setImmediate(next)
}

const up = stringify({ kind: 'up', exec: path.basename(__dirname) })
put(out, '\n' + sign(up) + ' ' + up + '\n')
load()
