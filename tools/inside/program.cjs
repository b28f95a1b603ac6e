'use strict';
// Runs a program that returns a value: by return at top level, or as its last
// expression. It is the body of an async function.
const fs = require('fs');
const vm = require('vm');
const Module = require('module');
const say = require('./tools.js')[Symbol.for('caisson')];

const AsyncFunction = (async () => {}).constructor;
// A line that begins so may go on with what is before it, or is no expression there.
const GOES_ON = /^\s*[([`+\-/]/;
const NONE = /^\s*(?:[.,*%<>=&|^?:;{})\]]|(?:function|class|async|let|in|instanceof)\b|$)/;

// parses holds a text against the grammar alone: nothing in it ends the body early.
function parses(body) {
  try {
    return Boolean(new AsyncFunction(body));
  } catch {
    return false;
  }
}

// returning is a program that parses, with its last expression returned.
function returning(text) {
  const lines = text.split('\n');
  for (let i = lines.length - 1; i >= 0; i--) {
    const [, ended, first] = /^(\s*;?)([^]*)$/.exec(lines[i]);
    const before = lines.slice(0, i).concat(ended).join('\n');
    if (NONE.test(first) || (GOES_ON.test(first) && !/(^|;)\s*$/.test(before))) continue;
    const last = [first].concat(lines.slice(i + 1)).join('\n');
    for (const one of [last, last.replace(/;\s*\/\/[^\n]*\s*$/, '')]) {
      const returned = `return (${one.replace(/[;\s]+$/, '')}\n)`;
      if (parses(returned) && parses(before)) return before + returned;
    }
  }
  return text;
}

// program is the function that a text is the body of, with the names that code has here.
function program(file) {
  const text = fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, '').replace(/^#!/, '//');
  const filename = `${process.cwd()}/[program]`;
  const head = '(async () => {';
  new vm.Script(`${head}${text}\n})`, { filename, columnOffset: -head.length }); // its errors have the right places
  if (!parses(text)) new AsyncFunction(text);
  const own = new Module(filename);
  Object.assign(own, { filename, paths: Module._nodeModulePaths(process.cwd()) });
  process.mainModule = own;
  const { exports } = own;
  own._compile(`module.exports = async () => {${returning(text)}\n}`, filename);
  const main = own.exports;
  own.exports = exports;
  return main;
}

function json(value) {
  const text = JSON.stringify(value, function plain(key, value) {
    const given = this[key]; // before a Buffer has made an object of itself
    if (given instanceof Uint8Array) return Buffer.from(given).toString('base64');
    if (given instanceof Set) return [...given];
    if (given instanceof Map) return Object.fromEntries(given);
    const type = typeof value;
    if (type === 'bigint' || type === 'symbol' || type === 'function') throw new TypeError(`${type} is not JSON`);
    if (type === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is not JSON`);
    if (type === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0) {
      const of = Object.getPrototypeOf(value);
      if (of !== null && of !== Object.prototype) throw new TypeError(`${of.constructor.name} is not JSON${value instanceof Promise ? ': await it' : ''}`);
    }
    return value;
  });
  return text === undefined ? 'null' : text;
}

async function raised(kind, message, traceback) {
  process.stderr.write(`${traceback || message}\n`);
  await say(Buffer.from(JSON.stringify({ raise: { kind, message, traceback } })));
  process.exit(1);
}

async function run(file) {
  process.argv.splice(1, 1);
  let value, over = false;
  process.once('beforeExit', () => over || raised('value', 'the program waits for what never comes', ''));
  try {
    value = await program(file)();
  } catch (e) {
    over = true;
    const is = e instanceof Error;
    const stack = is ? String(e.stack).split(/\n[^\n]*\/program\.cjs:/)[0] : require('util').inspect(e);
    return raised(is ? e.name : typeof e, String(is ? e.message : e), stack);
  }
  over = true;
  let text;
  try {
    text = json(value);
  } catch (e) {
    return raised('value', `the program returned what is not JSON: ${e.message}`, '');
  }
  return say(Buffer.from(`{"return":${text}}`)).catch((e) => raised('value', e.message, ''));
}

run(process.argv[2]);
