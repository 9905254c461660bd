// cordon_guest.mjs - the Node runtime inside a session: uses the wire (docs/wire.md) on descriptor 3 and runs
// code as a prompt does (let and const may be declared again, await at the top level, the last value is the result).
//
//   node cordon_guest.mjs              one session
//   node cordon_guest.mjs --validate   checks the code on stdin, runs nothing
//
// V8's mode for prompts is used through the inspector inside this process; no port is opened. The wire is read,
// blocking, while the event loop is empty: an execution has ended when its value is there and no callback is
// pending. Nothing here is a security boundary: the code can reach all of it if it tries.
import childProcess from 'node:child_process';
import fs from 'node:fs';
import inspector from 'node:inspector';
import { createRequire, isBuiltin, syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL, fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { cleanStack, decode, encode, parse, quote, text, ValueFormError } from './cordon_values.mjs';
import { completeness, completions } from './cordon_inspect.mjs';
import { beginOwn, emptyStack, isForeign, isOwnPending } from './cordon_pending.mjs';
import { resolve, Writer } from './cordon_columns.mjs';
import { advice, withImports } from './cordon_source.mjs';

const WIRE = 3;
const HERE = path.dirname(fileURLToPath(import.meta.url));
const IMPORT = '__cordon_import__';
const reallyExit = process.reallyExit.bind(process);
const hidden = (name, value) =>
  Object.defineProperty(globalThis, name, { value, writable: false, enumerable: false, configurable: true });

// ---- the wire

const EMPTY = Buffer.alloc(0);
let rest = EMPTY;
let parts = []; // of an incomplete line
const chunk = Buffer.allocUnsafe(65536);

let rehearsals = 0; // warm-up executions left; their replies are discarded
const early = []; // messages that were read while looking for another

function send(line) {
  let data = Buffer.from(line + '\n');
  if (rehearsals) return;
  const was = hold(true);
  say(true);
  while (data.length) data = data.subarray(fs.writeSync(WIRE, data));
  say(false);
  hold(was);
}

/** The next message, blocking; null at the end. */
const receive = () => early.shift() ?? read();

function read() {
  for (;;) {
    const nl = rest.indexOf(10);
    if (nl >= 0) {
      parts.push(rest.subarray(0, nl));
      const line = (parts.length > 1 ? Buffer.concat(parts) : parts[0]).toString();
      parts = [];
      rest = rest.subarray(nl + 1);
      return parse(line);
    }
    if (rest.length) parts.push(rest);
    rest = EMPTY;
    let n;
    try {
      n = fs.readSync(WIRE, chunk);
    } catch (e) {
      if (e.code === 'EINTR' || e.code === 'EAGAIN') continue;
      return null;
    }
    if (!n) return null;
    rest = Buffer.from(chunk.subarray(0, n));
  }
}

/** A descriptor from the host: of a file for so many bytes, or (0) of the one with the variables' columns. */
function bufferOf(bytes) {
  const was = hold(true);
  send(`{"type":"buffer","id":${current.id}${bytes ? `,"bytes":${bytes}` : ''}}`);
  try {
    for (;;) {
      while (rest.includes(10)) {
        const m = read();
        if (m.type !== 'buffer') early.push(m);
        else if (m.error !== undefined) throw new ValueFormError(m.error);
        else return takeDescriptor();
      }
      const n = receiveInto(chunk);
      if (n <= 0) reallyExit(0);
      rest = Buffer.concat([rest, chunk.subarray(0, n)]);
    }
  } finally {
    hold(was);
  }
}

/** The form with the binary columns that the host has for it. */
function withColumns(form, header) {
  const fd = bufferOf(0), data = new Uint8Array(header.bytes);
  for (let at = 0, n; at < data.length; at += n)
    if (!(n = fs.readSync(fd, data, at, Math.min(data.length - at, 1 << 30), at))) throw new Error('the binary columns are cut off');
  fs.closeSync(fd);
  return resolve(form, header, data.buffer);
}

function sendColumns(columns) {
  const fd = bufferOf(columns.bytes);
  let at = 0;
  for (const part of columns.parts) {
    if (!fillFile(fd, at, part)) throw new ValueFormError("the host's buffer cannot be mapped");
    at += part.length;
  }
  fs.closeSync(fd);
}

// ---- the session

const session = new inspector.Session();
let options = {};
let messageBytes = 1 << 20, rpcBytes = 8 << 20, valueBytes = 0, resultName = 'result';
let current = null; // the running execution
let count = 0;
let kept; // the last value from the inspector

class ToolError extends Error {
  get name() { return 'ToolError'; }
}

class ExitSignal {
  constructor(code) { this.code = code; }
}

/** One Runtime call; the answer may come at once or in a later turn. */
const post = (method, params) => new Promise((resolve) =>
  session.post(method, params, (error, result) => resolve(error ? { error } : result)));

/** The value behind the inspector's handle. */
async function unwrap(handle) {
  if (!handle.objectId) {
    const special = handle.unserializableValue;
    if (special === undefined) return handle.value;
    return special.endsWith('n') ? BigInt(special.slice(0, -1)) : Number(special);
  }
  kept = undefined;
  await post('Runtime.callFunctionOn', { objectId: handle.objectId, functionDeclaration: 'function(f) { f(this) }',
    arguments: [{ objectId: hookId }], silent: true });
  post('Runtime.releaseObject', { objectId: handle.objectId });
  const value = kept;
  kept = undefined;
  // `this` of a sloppy function is an object: a symbol comes back boxed.
  return handle.type === 'symbol' ? value.valueOf() : value;
}
let hookId;

async function connect() {
  session.connect();
  hidden('__cordon_hook__', (v) => { kept = v; });
  const r = await post('Runtime.evaluate', { expression: '__cordon_hook__' });
  hookId = r.result.objectId;
  delete globalThis.__cordon_hook__;
}

/** Evaluates in the prompt's mode. */
function evaluate(expression) {
  let answer;
  const promise = new Promise((resolve, reject) => {
    answer = (error, result) => (error ? reject(new Error(error.message)) : resolve(result));
  });
  const params = { expression, replMode: true, awaitPromise: true, silent: true };
  let thrown;
  const isWhole = guard(() => {
    hold(false);
    session.post('Runtime.evaluate', params, answer);
    try {
      process._tickCallback(); // with what it does after an await that waits for nothing
    } catch (e) {
      thrown = { e };
    }
  });
  if (!isWhole) {
    promise.catch(() => {});
    emptyStack();
    const { cache } = createRequire('/x.js'); // where Node has not got to drop what it was loading
    for (const [k, m] of Object.entries(cache)) if (m?.loaded === false) delete cache[k];
    throw new Interrupted();
  }
  if (thrown) { // by a callback of process.nextTick: Node calls that uncaught, and goes on with the other callbacks
    process.emit('uncaughtException', thrown.e, 'uncaughtException');
    setImmediate(process._tickCallback);
    emptyStack();
  }
  return promise;
}

// ---- interrupts: a message names the execution, and SIGINT says that it has come. Where the event loop does not turn,
// a thread sees it (interrupt.c), which ends what guard() has called.

class Interrupted extends Error {
  constructor() { super('The execution was interrupted'); }
}

/** Whether the message has come that interrupts this execution. Waits for nothing. */
function isInterrupted() {
  while (rest.includes(10) || hasMail()) {
    const m = read();
    if (m === null) reallyExit(0);
    if (m.type !== 'interrupt') early.push(m);
    else if (JSON.stringify(m.id) === current.id) current.isInterrupted = true;
  }
  return current.isInterrupted;
}

function onSigint() {
  if (current && isInterrupted()) abort(interrupted());
}

/** While Node waits for a program it cannot be ended: it would not survive that where it makes the answer. The program
 *  gets SIGINT too, so the wait ends, and then the code does. */
function waitWhole(name) {
  const f = childProcess[name];
  childProcess[name] = { [name](...args) {
    const was = hold(true);
    let isOver = false;
    try {
      return f.apply(this, args);
    } finally {
      isOver = current !== null && isInterrupted();
      hold(was);
      if (isOver) {
        tell();
        while (!was); // until the thread ends it: the code could catch an exception
        throw new Interrupted();
      }
    }
  } }[name];
}

// ---- one execution

function errorFields(kind, name, message, stack, line) {
  const cut = (s, n) => (s.length > n ? s.slice(0, n) + '...' : s);
  return `"error":{"kind":"${kind}","name":${quote(cut(String(name), 200))},"message":${quote(cut(message, 16384))}` +
    (stack ? `,"traceback":${quote(cut(stack, 32768))}` : '') + (line ? `,"line":${line}` : '') + '}';
}

const safely = (f, fallback) => {
  try {
    const v = f();
    return typeof v === 'string' ? v : String(v);
  } catch {
    return fallback;
  }
};

/** The fields of a failure, whatever was thrown. */
function failure(e, details) {
  if (e instanceof ExitSignal) return exited(e.code);
  if (e instanceof Interrupted) return interrupted();
  const isError = typeof e === 'object' && e !== null && 'message' in e;
  const name = isError ? safely(() => e.name, 'Error') : 'Error';
  const message = isError ? safely(() => e.message, '') : text(e);
  const stack = isError ? cleanStack(safely(() => e.stack ?? '', '')) : 'Uncaught ' + message;
  const frames = [...stack.matchAll(/execution-(\d+)\.js:(\d+):/g)].filter((m) => Number(m[1]) === count);
  const mine = /^\s+at .*execution-\d+\.js:/m.test(stack);
  let kind = 'exception';
  if (details && e instanceof SyntaxError && !mine) kind = 'syntax';
  else if (e instanceof ToolError) kind = 'tool';
  else if (/Array buffer allocation failed|out of memory/i.test(message)) kind = 'memory';
  if (kind === 'syntax' && current) current.warnings = null;
  const line = kind === 'syntax' ? Math.min((details.lineNumber ?? 0) + 1, current?.lines ?? 1) : frames.length ? Number(frames[0][2]) : undefined;
  return '"ok":false,' + errorFields(kind, name, message, stack, line);
}

const interrupted = () =>
  '"ok":false,' + errorFields('interrupted', 'Interrupted', 'The execution was interrupted');

function exited(code) {
  const status = (Number.isInteger(Number(code ?? 0)) ? Number(code ?? 0) : 1) & 255;
  return `"ok":${status === 0},"exit_code":${status}` + (status ? ',' +
    errorFields('exception', 'exit', `the code asked to exit with status ${status}`) : '');
}

/** The part of a result's message that is not its value: one in REST_PART. */
const REST_PART = 32;

/** The code succeeded, so that its last value cannot cross is no failure, but it is told. */
function lacksValue(why) {
  if (current) current.warnings = ['The result has no value, only its text: ' + why, ...current.warnings ?? []];
}

function valueFields(v) {
  if (v === undefined) return '"ok":true';
  let form, why;
  try {
    const columns = current?.buffers ? new Writer(valueBytes, (text) => new ValueFormError(text)) : null;
    form = encode(v, rpcBytes, null, columns);
    if (columns?.bytes) {
      sendColumns(columns);
      form += `,"buffer":${JSON.stringify(columns.header)}`;
    }
    if (Buffer.byteLength(form) > rpcBytes - rpcBytes / REST_PART) why = `the value is too large (more than ${rpcBytes} bytes)`;
  } catch (e) {
    why = e instanceof ValueFormError ? e.message : 'the value is too large';
  }
  if (why) lacksValue(why);
  return '"ok":true' + (why ? '' : `,"value":${form}`) + (v === null ? '' : `,"text":${quote(text(v))}`);
}

function changeEnv(env) {
  for (const [k, v] of Object.entries(env ?? {})) {
    if (v === null) delete process.env[k];
    else process.env[k] = String(v);
  }
}

/** Whether the code seems to assign the result's name. */
const assignsResult = (code) =>
  code.includes(resultName) && new RegExp(`(^|[^.\\w$])${resultName}\\s*(=(?![=>])|[-+*/%&|^?]{1,3}=)`).test(code);

/** Where the host believes the code to be. */
let knownCwd = '/home/user';

function where() {
  try { return process.cwd(); } catch { return '/'; } // it was removed
}

function goTo(directory) {
  try { process.chdir(directory); } catch { /* it is not there any more: stay */ }
  knownCwd = where();
}

function movedField() {
  const now = where();
  if (now === knownCwd) return '';
  knownCwd = now;
  return `,"cwd":${quote(now)}`;
}

// ---- streams

const native = { exports: {} }; // descriptors, which JavaScript cannot duplicate
process.dlopen(native, process.env.CORDON_NODE_LIB || path.join(HERE, 'cordon_node.node'));
const { mendInput, mendOutput, takeInput, watch, begin, end, hold, say, tell, hasMail, receiveInto, takeDescriptor, fillFile, guard } = native.exports;

/** process.stdout and process.stderr as they are before each execution: the first use makes the stream, and what
 *  code ended, replaced or hooked comes back. */
function standing(name, fd) {
  const make = Object.getOwnPropertyDescriptor(process, name).get;
  let stream;
  const whole = (s) => Object.assign(s, { _final: (done) => done() }); // end() must not close the descriptor, so that it only affects one execution
  const get = () => stream ??= whole(make.call(process));
  const property = { configurable: true, enumerable: true, get };
  Object.defineProperty(process, name, property);
  return () => {
    if (Object.getOwnPropertyDescriptor(process, name)?.get !== get) Object.defineProperty(process, name, property);
    if (!stream) return;
    for (const key of ['write', 'end']) if (Object.hasOwn(stream, key)) delete stream[key];
    if (!stream.destroyed && !stream.writableEnded) return;
    stream = whole(new net.Socket({ fd, readable: false, writable: true }));
    stream._destroy = (e, done) => done(e); // it does not own the descriptor
    stream.destroySoon = stream.destroy;
    console['_' + name] = stream;
  };
}
const mendStreams = [standing('stdout', 1), standing('stderr', 2)];

/** Descriptors and streams for an execution; a session that has lost those that were put aside ends. */
function mendAll() {
  if (!mendOutput()) reallyExit(0);
  for (const f of mendStreams) f();
  if (mendInput() || !Object.getOwnPropertyDescriptor(process, 'stdin')?.get) freshStdin();
}

/** What descriptor 0 is now, as process.stdin. */
function freshStdin() {
  let stream;
  Object.defineProperty(process, 'stdin', { configurable: true, enumerable: true,
    get: () => stream ??= fs.fstatSync(0).isFIFO() ?
      new net.Socket({ fd: 0, readable: true, writable: false, manualStart: true }) :
      new fs.ReadStream(null, { fd: 0, autoClose: false }) });
}

/** This execution's own stdin: waits until the host has opened its end. */
async function takeStdin(file) {
  const old = process.stdin;
  if (!old.closed) await new Promise((resolve) => old.once('close', resolve).destroy());
  takeInput(fs.openSync(file));
  freshStdin();
}

async function run(m) {
  if (m.stdin) await takeStdin(m.stdin);
  changeEnv(m.env);
  if (typeof m.directory === 'string') goTo(m.directory);
  if (Array.isArray(m.args)) process.argv.splice(2, Infinity, ...m.args);
  const context = Object.entries(m.buffer ? withColumns(m.context, m.buffer) : m.context ?? {});
  if (current) current.buffers = m.buffers === true;
  for (const [k, v] of context) { // an assignment, so that it also reaches a `let` of the code
    if (!/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(k)) throw new Error(`'${k}' is no name of a variable`);
    hidden('__cordon_value__', decode(v));
    await evaluate(`${k} = __cordon_value__; undefined`);
    delete globalThis.__cordon_value__;
  }
  const code = m.code ?? '';
  if (m.validate && current) current.warnings = advice(code).slice(0, 64);
  const r = await evaluate(withImports(code, IMPORT) + `\n//# sourceURL=execution-${count}.js`);
  if (r.exceptionDetails) return failure(await unwrap(r.exceptionDetails.exception), r.exceptionDetails);
  let value = await unwrap(r.result);
  if (value instanceof Promise) value = await value;
  if (assignsResult(code)) {
    const own = await evaluate(`typeof ${resultName} === 'undefined' ? undefined : ${resultName}`);
    const v = own.exceptionDetails ? undefined : await unwrap(own.result);
    if (v !== undefined) value = v instanceof Promise ? await v : v;
  }
  return valueFields(value);
}

/** Answers a prompt's question about code, which does not run. */
async function inspect(m) {
  const code = m.code ?? '';
  const said = m.question === 'is_complete' ? { status: completeness(withImports(code, IMPORT)) } :
    await completions(code, post, unwrap);
  return `"ok":true,"value":${JSON.stringify(said)}`;
}

function start(m) {
  const runs = m.type !== 'inspect';
  count += runs;
  const mine = current = { id: JSON.stringify(m.id ?? 0), calls: 0, fields: null,
    isInterrupted: false, lines: (m.code ?? '').split('\n').length };
  beginOwn();
  process.exitCode = undefined;
  mendAll();
  if (!process.listeners('SIGINT').includes(onSigint)) process.on('SIGINT', onSigint);
  begin(mine.id);
  if (isInterrupted()) return abort(interrupted());
  (runs ? run(m) : inspect(m)).catch((e) => failure(e)).then((fields) => {
    if (current !== mine || mine.fields) return;
    mine.fields = fields;
    setImmediate(settle);
  });
}

/** The value is there: answer, unless something of this execution is left that would still call back. What an
 *  interrupted one before it left behind does not count. */
function settle() {
  if (!current?.fields) return;
  if (!isOwnPending()) finish();
  else setTimeout(settle, 10).unref();
}

const loopHold = new MessageChannel().port1; // keeps the event loop alive while it is referenced
loopHold.on('message', () => {});
loopHold.unref();

function finish() {
  loopHold.unref();
  const { id, warnings } = current, fields = end() ? interrupted() : current.fields;
  current = null;
  const code = process.exitCode;
  process.exitCode = undefined;
  let line = `{"type":"result","id":${id},${fields}` +
    (code !== undefined && !fields.includes('"exit_code"') ? `,"exit_code":${Number(code) & 255}` : '') +
    (warnings?.length ? `,"warnings":[${warnings.map(quote)}]` : '') + movedField() + '}';
  if (Buffer.byteLength(line) >= rpcBytes)
    line = `{"type":"result","id":${id},"ok":false,` + errorFields('value', 'ValueError',
      `The result is too large (${Buffer.byteLength(line)} bytes, max ${rpcBytes})`) + '}';
  if (!mendOutput()) reallyExit(0);
  send(line);
  idle();
}

/** Waits for the next execution. */
function idle() {
  if (rehearsals) {
    count = 0;
    rehearsals -= 1;
    if (rehearsals) {
      setImmediate(() => start({ id: 0, code: '1+1', validate: true }));
      return;
    }
  }
  for (;;) {
    const m = receive();
    if (m === null || m.type === 'exit') reallyExit(0);
    if (m.type === 'execute' || m.type === 'inspect') {
      setImmediate(() => start(m));
      return;
    }
  }
}

/** Ends the running execution from outside its own flow. */
function abort(fields) {
  if (!current) return;
  const mine = current;
  mine.fields = fields;
  setImmediate(() => current === mine && finish());
}

process.on('uncaughtException', (e) => {
  if (!isForeign()) abort(failure(e));
  else if (!(e instanceof ExitSignal))
    process.stderr.write(`cordon: in a callback of an earlier execution: ${safely(() => cleanStack(String(e?.stack ?? e)), 'an error')}\n`);
});
process.on('SIGINT', onSigint);
process.on('beforeExit', () => {
  if (!current) return idle();
  // Code that was ended inside setTimeout() can leave Node's count of timers wrong: they no longer keep the loop alive.
  if (!current.fields && isOwnPending() && !current.isKept) {
    current.isKept = true;
    loopHold.ref();
    return;
  }
  if (!current.fields)
    current.fields = '"ok":false,' + errorFields('exception', 'Error',
      'the code awaits something that can never happen');
  finish();
});

// ---- tools

const WORDS = { number: 'numeric', numeric: 'numeric', double: 'numeric', string: 'character', character: 'character',
  boolean: 'logical', logical: 'logical', integer: 'integer', array: 'list', list: 'list', object: 'list',
  'data.frame': 'data.frame' };
const isObject = (v) => typeof v === 'object' && v !== null;
const CHECKS = {
  number: (v) => typeof v === 'number', numeric: (v) => typeof v === 'number', double: (v) => typeof v === 'number',
  integer: (v) => Number.isInteger(v) || typeof v === 'bigint', string: (v) => typeof v === 'string',
  character: (v) => typeof v === 'string', boolean: (v) => typeof v === 'boolean',
  logical: (v) => typeof v === 'boolean', array: Array.isArray, list: isObject, object: isObject,
  'data.frame': isObject, null: (v) => v === null, bytes: (v) => ArrayBuffer.isView(v) || v instanceof ArrayBuffer,
};
const kindOf = (v) => (v === null ? 'null' : Array.isArray(v) ? 'array' : typeof v);

const toolBytes = new Map(); // maximum size of each tool's arguments

function callTool(name, args) {
  if (!current) throw new ToolError('tools can only be called while an execution runs');
  const id = current.id, call = ++current.calls, limit = toolBytes.get(name) ?? messageBytes;
  let line;
  try {
    line = `{"type":"tool_call","id":${id},"call":${call},"tool":${quote(name)},"args":${encode(args, limit)}}`;
  } catch (e) {
    throw new ToolError(`Tool '${name}': an argument cannot cross: ${e.message}`);
  }
  const size = Buffer.byteLength(line) + 1;
  if (size > limit) throw new ToolError(`IPC message too large (${size} bytes, max ${limit})`);
  const was = hold(true);
  send(line);
  const m = answer(id, call);
  hold(was);
  if (m.type === 'interrupt') throw new Interrupted();
  if ('error' in m) throw new ToolError(String(m.error));
  return decode(m.value);
}

/** The answer to a call, or the message that interrupts the execution. */
function answer(id, call) {
  for (;;) {
    const m = receive();
    if (m === null) reallyExit(0);
    if (JSON.stringify(m.id) !== id) continue;
    if (m.type === 'tool_result' && m.call === call) return m;
    if (m.type !== 'interrupt') continue;
    current.isInterrupted = true;
    tell(); // the code may catch what is thrown
    return m;
  }
}

function makeTool(spec) {
  const { name } = spec;
  const declared = spec.args ?? {};
  const names = Object.keys(declared);
  const form = (n) => (isObject(declared[n]) ? declared[n] : { type: declared[n] });
  const kinds = Object.fromEntries(names.map((n) => [n, [form(n).type].flat().filter((t) => typeof t === 'string')]));
  const required = names.filter((n) => form(n).required !== false);
  const bind = (given) => {
    const one = given[0];
    const named = given.length === 1 && isObject(one) && Object.getPrototypeOf(one) === Object.prototype &&
      Object.keys(one).length > 0 && !kinds[names[0]]?.some((t) => CHECKS[t]?.(one)) && kinds[names[0]]?.length !== 0;
    if (named || given.length === 1 && isObject(one) && Object.keys(one).every((k) => names.includes(k)) &&
        Object.keys(one).length > 0 && names.length > 1) return { ...one };
    if (given.length > names.length)
      throw new ToolError(`Unexpected arguments for tool '${name}': it takes ${names.length}, got ${given.length}`);
    return Object.fromEntries(given.map((v, i) => [names[i], v]).filter(([, v]) => v !== undefined));
  };
  const tool = (...given) => {
    if (spec.command && names.every((n) => ['args', 'stdin', 'cwd', 'env'].includes(n))) {
      const last = given[given.length - 1];
      let stdin = isObject(last) && 'stdin' in last ? given.pop().stdin : '';
      if (typeof stdin === 'string' && stdin.includes('\0')) stdin = Buffer.from(stdin);
      const asked = { args: given.map(String), stdin };
      if (names.includes('cwd')) asked.cwd = where();
      if (names.includes('env'))
        asked.env = Object.fromEntries(Object.entries(process.env).filter(([k]) => !k.startsWith('CORDON_')));
      return callTool(name, asked);
    }
    const args = bind(given);
    const evil = Object.keys(args).filter((n) => !names.includes(n));
    if (evil.length)
      throw new ToolError(`Unexpected arguments for tool '${name}': ${evil.map((n) => `'${n}'`).join(', ')}`);
    for (const n of required)
      if (!(n in args)) throw new ToolError(`Tool '${name}': argument '${n}' is missing`);
    for (const n of Object.keys(args)) {
      if (args[n] === null && !required.includes(n)) {
        delete args[n];
        continue;
      }
      const types = kinds[n];
      if (types.length && types.every((t) => CHECKS[t]) && !types.some((t) => CHECKS[t](args[n])))
        throw new ToolError(`Tool '${name}': argument '${n}' must be ${types.map((t) => WORDS[t] ?? t).join(' or ')}, ` +
          `got ${kindOf(args[n])}`);
    }
    return callTool(name, args);
  };
  Object.defineProperties(tool, { name: { value: name }, length: { value: required.length },
    description: { value: spec.description ?? '', enumerable: true },
    usage: { value: spec.usage ?? '' }, examples: { value: spec.examples ?? [] },
    args: { value: declared, enumerable: true } });
  return Object.freeze(tool);
}

function installTools(specs) {
  const tools = { call: callTool };
  for (const spec of specs ?? []) {
    const tool = tools[spec.name] = makeTool(spec);
    toolBytes.set(spec.name, spec.argument_bytes);
    const parts = spec.name.split('.').filter(Boolean);
    if (parts.length < 2) {
      hidden(spec.name, tool);
      continue;
    }
    let here = globalThis;
    for (const p of parts.slice(0, -1)) {
      if (!Object.hasOwn(here, p)) Object.defineProperty(here, p, { value: {}, configurable: true, writable: true });
      here = here[p];
    }
    if (isObject(here) || typeof here === 'function')
      Object.defineProperty(here, parts[parts.length - 1], { value: tool, configurable: true });
  }
  hidden('tools', Object.freeze(tools));
  hidden('ToolError', ToolError);
  hidden('help', (t) => {
    console.log(t?.description || 'No help.');
    if (t?.usage) console.log(`Usage: ${t.usage}`);
    for (const e of t?.examples ?? []) console.log(`Example: ${e}`);
    for (const [n, d] of Object.entries(t?.args ?? {}))
      console.log(`  ${n}: ${(isObject(d) ? d.type : d) ?? 'any'}${d?.required === false ? ', optional' : ''}`);
  });
  hidden('display', (data, mime = 'text/html', name = undefined) => {
    if (!current) return;
    const body = typeof data === 'string' ? `"encoding":"text","data":${quote(data)}` :
      `"encoding":"base64","data":"${Buffer.from(data).toString('base64')}"`;
    const line = `{"type":"output","id":${current.id},"mime":${quote(mime)},${body}` +
      (name ? `,"name":${quote(String(name))}` : '') + '}';
    if (Buffer.byteLength(line) < rpcBytes) send(line);
    else process.stderr.write(`cordon: an output of type ${mime} was left out: too large\n`);
  });
}

// ---- starting

function takeToken() {
  const token = process.env.CORDON_TOKEN ?? '';
  delete process.env.CORDON_TOKEN;
  try { // also in the memory behind /proc/self/environ, if that can be written
    const at = fs.readFileSync('/proc/self/environ').indexOf(token);
    const stat = fs.readFileSync('/proc/self/stat', 'latin1');
    const begin = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[47]);
    const fd = fs.openSync('/proc/self/mem', 'r+');
    if (token && at >= 0 && begin) fs.writeSync(fd, Buffer.alloc(token.length, 'x'), 0, token.length, begin + at);
    fs.closeSync(fd);
  } catch { /* the token is of no use after the hello */ }
  return token;
}

function importFrom(specifier) {
  const s = String(specifier);
  if (isBuiltin(s)) return import(s);
  if (/^(\.{0,2}\/)/.test(s)) return import(pathToFileURL(path.resolve(s)).href);
  try {
    return import(pathToFileURL(createRequire(path.resolve('x.js')).resolve(s)).href);
  } catch {
    return import(s);
  }
}

function prepare() {
  resultName = options.result_name ?? resultName;
  messageBytes = options.message_bytes ?? messageBytes;
  rpcBytes = options.rpc_bytes ?? rpcBytes;
  valueBytes = options.value_bytes ?? 0;
  changeEnv(options.env);
  hidden(IMPORT, importFrom);
  const require = createRequire(path.resolve('execution.js'));
  for (const [k, v] of Object.entries({ require, module: { exports: {} }, exports: {},
    __filename: path.resolve('execution.js'), __dirname: process.cwd() }))
    Object.defineProperty(globalThis, k, { value: v, writable: true, enumerable: false, configurable: true });
  process.exit = (code) => {
    if (current) throw new ExitSignal(code ?? process.exitCode ?? 0);
    reallyExit(code ?? 0);
  };
  installTools(options.tools);
  ['spawnSync', 'execFileSync', 'execSync'].forEach(waitWhole);
  syncBuiltinESMExports();
}

/** What V8 says about the syntax: {error, line, column} or null. Nothing of the code runs. */
async function syntaxError(script) {
  try {
    new vm.Script(script, { filename: 'code' });
    return null;
  } catch (e) {
    const [place, , mark] = e.stack.split('\n');
    const line = /^code:(\d+)$/.exec(place);
    if (line && !/await/.test(e.message))
      return { error: `${e.name}: ${e.message}`, line: Number(line[1]), column: mark.indexOf('^') + 1 || null };
  }
  // Code with a top-level await is not a valid script, but may be valid in a function, which is never called.
  await connect();
  const said = await post('Runtime.evaluate', { expression: `(async () => {${script}\n})`, silent: true });
  const d = said.exceptionDetails;
  return d ? { error: (d.exception?.description ?? d.text).split('\n')[0], line: d.lineNumber + 1,
    column: d.columnNumber + 1 - (d.lineNumber === 0 ? 13 : 0) } : null;
}

async function check(code) {
  const wrong = await syntaxError(withImports(code, IMPORT));
  if (wrong) wrong.line = Math.min(wrong.line, code.trimEnd().split('\n').length);
  process.stdout.write(JSON.stringify({ valid: !wrong, error: null, line: null, column: null, ...wrong,
    warnings: wrong ? [] : advice(code) }) + '\n');
}

if (process.argv.includes('--validate')) {
  await check(fs.readFileSync(0, 'utf8'));
} else {
  const token = takeToken();
  const obstacle = watch();
  if (obstacle !== undefined) { // endless code could not be ended alone: rather no session than one that lies
    fs.writeSync(2, `cordon: code cannot be interrupted: ${obstacle}\n`);
    reallyExit(1);
  }
  await connect();
  send(`{"type":"hello","version":1,"token":"${token}","guest":"node","language":"${process.versions.node}"}`);
  const m = receive();
  if (m?.type !== 'welcome') reallyExit(0);
  options = m.guest_options ?? {};
  prepare();
  if (options.ahead) rehearsals = 6; // made in advance: V8 compiles a function at its first call
  setImmediate(idle);
}
