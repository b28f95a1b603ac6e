'use strict';
// The host's tools, as async functions: await web_search({query: 'x'}), or with the
// arguments in the order of the schema. A call without a result throws a ToolError.
const fs = require('fs');
const path = require('path');

const PART = 1, LAST = 2, HEADER = 9, PIECE = 64 << 10, OPEN = 1000;

class ToolError extends Error {
  constructor(tool, said) {
    super(said.hint ? `${said.message}\n${said.hint}` : said.message);
    this.name = 'ToolError';
    Object.assign(this, { tool, kind: said.kind, hint: said.hint || '' });
  }
}

let line = null;

// connect opens the connection of this process, which keeps it alive while a call is open.
function connect() {
  const socket = require('net').connect(process.env.CAISSON_TOOLS || '');
  const own = { socket, open: new Map(), waiting: [], last: 0 };
  let rest = Buffer.alloc(0);
  socket.on('data', (data) => {
    rest = rest.length ? Buffer.concat([rest, data]) : data;
    while (rest.length >= HEADER && rest.length >= HEADER + rest.readUInt32BE(0)) {
      const end = HEADER + rest.readUInt32BE(0);
      const call = own.open.get(rest.readUInt32BE(4));
      if (call) {
        call.parts.push(Buffer.from(rest.subarray(HEADER, end)));
        if (rest[8] === LAST) finish(own, rest.readUInt32BE(4), call);
      }
      rest = rest.subarray(end);
    }
  });
  const over = (e) => {
    if (line === own) line = null;
    const left = [...own.open.values(), ...own.waiting];
    own.open.clear();
    own.waiting = [];
    for (const call of left) call.fail({ kind: 'unavailable', message: e ? `the host does not answer for tools: ${e.message}` : 'the host has closed the way to tools' });
  };
  socket.on('error', over);
  socket.on('close', () => over());
  return own;
}

function finish(own, number, call) {
  own.open.delete(number);
  const next = own.waiting.shift();
  if (next) begin(own, next);
  else if (own.open.size === 0) own.socket.unref();
  call.done(Buffer.concat(call.parts).toString());
}

function begin(own, call) {
  do own.last = (own.last % 0xFFFFFFFF) + 1; while (own.open.has(own.last));
  const number = own.last;
  own.open.set(number, call);
  own.socket.ref();
  for (let at = 0, end; at === 0 || at < call.request.length; at = end) {
    end = Math.min(at + PIECE, call.request.length);
    const header = Buffer.alloc(HEADER);
    header.writeUInt32BE(end - at, 0);
    header.writeUInt32BE(number, 4);
    header[8] = end < call.request.length ? PART : LAST;
    own.socket.write(Buffer.concat([header, call.request.subarray(at, end)]));
  }
}

function plain(key, value) {
  const bytes = this[key]; // before a Buffer has made an object of itself
  if (bytes instanceof Uint8Array) return Buffer.from(bytes).toString('base64');
  if (value instanceof Set) return [...value];
  if (value instanceof Map) return Object.fromEntries(value);
  return typeof value === 'bigint' ? Number(value) : value;
}

// bytes gives a result its bytes, where the schema says that there are.
function bytes(value, schema) {
  if (!schema || typeof schema !== 'object') return value;
  if (typeof value === 'string' && schema.contentEncoding === 'base64') return Buffer.from(value, 'base64');
  if (Array.isArray(value) && schema.items) return value.map((v) => bytes(v, schema.items));
  if (value && typeof value === 'object' && schema.properties) {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, bytes(v, schema.properties[k])]));
  }
  return value;
}

function say(request, tool = '') {
  return new Promise((resolve, reject) => {
    const fail = (said) => reject(new ToolError(tool, said));
    const done = (text) => {
      const answer = JSON.parse(text);
      if (answer.error) fail(answer.error);
      else resolve(answer.result);
    };
    if (!line) line = connect();
    const call = { request, parts: [], done, fail };
    if (line.open.size >= OPEN) line.waiting.push(call);
    else begin(line, call);
  });
}

async function ask(spec, args) {
  return bytes(await say(Buffer.from(JSON.stringify({ tool: spec.name, arguments: args }, plain)), spec.name), spec.result);
}

function named(spec, given) {
  const [first] = given;
  if (given.length === 0) return {};
  if (given.length === 1 && first && typeof first === 'object' && !Array.isArray(first) && !(first instanceof Uint8Array)) return first;
  const schema = spec.parameters || {};
  const names = [...new Set([...(schema.required || []), ...Object.keys(schema.properties || {})])];
  if (given.length > names.length) throw new TypeError(`${spec.inside} takes ${names.length} arguments, or an object with them`);
  return Object.fromEntries(given.map((value, i) => [names[i], value]));
}

exports.ToolError = ToolError;
exports[Symbol.for('caisson')] = say; // for program.cjs
for (const spec of JSON.parse(fs.readFileSync(path.join(__dirname, 'tools.json'), 'utf8'))) {
  exports[spec.inside] = Object.defineProperty(async (...given) => ask(spec, named(spec, given)), 'name', { value: spec.inside });
}
