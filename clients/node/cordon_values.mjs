// cordon_values.mjs - converts values to and from tagged JSON (docs/values.md): data only, both ways.
// The client has a copy of this file (tools/copies).
import { types, inspect } from 'node:util';
import { Column, LIST_MIN, THRESHOLD } from './cordon_columns.mjs';

export const MAX_DEPTH = 62; // JSON levels of one value; with the message around it, within the wire's 64
const MAX_COUNT = 1000000;
const TEXT_BYTES = 65536;

export class ValueFormError extends Error {}

/** An object that stays in its session: a function, an environment or a connection of R's. As text it is what the session
 *  prints of it; in a context, and as a tool's result, it is the object itself. */
export class Handle {
  constructor(id, type, text) {
    this.id = id;
    this.type = type;
    this.text = text;
  }

  toString() {
    return this.text;
  }

  [inspect.custom]() {
    return this.text;
  }
}

const ERRORS = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

const lone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A JSON string; lone surrogates become U+FFFD. */
export function quote(s) {
  return JSON.stringify(lone.test(s) ? s.replace(lone, '\ufffd') : s);
}

function number(x) {
  if (Number.isSafeInteger(x)) return Object.is(x, -0) ? '-0.0' : String(x);
  if (Number.isFinite(x)) {
    const s = String(x);
    return /[.e]/.test(s) ? s : s + '.0';
  }
  return `{"$":"float","v":"${Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf'}"}`;
}

const DTYPES = {
  Int8Array: 'int8', Uint8ClampedArray: 'uint8', Int16Array: 'int16', Uint16Array: 'uint16', Int32Array: 'int32',
  Uint32Array: 'uint32', Float32Array: 'float32', Float64Array: 'float64', BigInt64Array: 'int64',
  BigUint64Array: 'uint64',
};
const TYPED = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  uint32: Uint32Array, float32: Float32Array, float64: Float64Array, int64: BigInt64Array, uint64: BigUint64Array,
};

class Encoder {
  constructor(limit, replace, columns) {
    this.columns = columns;
    this.limit = this.bytes = limit;
    this.replace = replace;
    this.left = MAX_COUNT;
    this.path = new Set();
  }

  put(text) {
    this.bytes -= text.length;
    this.left -= 1;
    if (this.left < 0) throw new ValueFormError(`the value has more than ${MAX_COUNT} elements`);
    if (this.bytes < 0) throw new ValueFormError(`the value is too large (more than ${this.limit} bytes)`);
    return text;
  }

  any(v, depth) {
    switch (typeof v) {
      case 'string': return this.put(quote(v));
      case 'number': return this.put(number(v));
      case 'boolean': return this.put(v ? 'true' : 'false');
      case 'undefined': return this.put('null');
      case 'bigint': return this.put(`{"$":"int","v":"${v}"}`);
      case 'object': break;
      default: return this.repr(v);
    }
    if (v === null) return this.put('null');
    if (depth > MAX_DEPTH) throw new ValueFormError(`the value is nested deeper than ${MAX_DEPTH} levels`);
    if (this.path.has(v)) throw new ValueFormError('the value contains itself');
    this.path.add(v);
    const text = this.object(v, depth);
    this.path.delete(v);
    return text;
  }

  object(v, depth) {
    if (this.replace) v = this.replace(v);
    else if (types.isProxy(v)) return this.repr(v);
    if (Array.isArray(v)) {
      const ref = this.columns && v.length >= LIST_MIN ? this.columns.sequence(v) : null;
      if (ref) return this.put(`{"$":"list","v":${ref}}`);
      if (v.length > this.left) throw new ValueFormError(`the value has more than ${MAX_COUNT} elements`);
      return this.list(v, depth);
    }
    if (types.isDate(v)) {
      const t = Date.prototype.getTime.call(v);
      return this.put(Number.isNaN(t) ? '{"$":"na","t":"logical"}' :
        `{"$":"datetime","v":"${new Date(t).toISOString().replace('Z', '+00:00')}"}`);
    }
    if (ArrayBuffer.isView(v) || types.isAnyArrayBuffer(v)) return this.binary(v);
    if (types.isMap(v)) {
      const pairs = [...Map.prototype.entries.call(v)];
      return `{"$":"map","v":[${pairs.map(([k, x]) => `[${this.any(k, depth + 3)},${this.any(x, depth + 3)}]`).join()}]}`;
    }
    if (types.isSet(v)) return `{"$":"set","v":${this.list([...Set.prototype.values.call(v)], depth + 1)}}`;
    if (v instanceof Handle) return this.put(`{"$":"handle","id":${quote(String(v.id))}}`);
    if (types.isNativeError(v)) return this.error(v, depth);
    if (types.isBoxedPrimitive(v)) return this.any(v.valueOf(), depth);
    if (v instanceof Error || types.isPromise(v) || types.isRegExp(v) || types.isWeakMap(v) ||
        types.isWeakSet(v) || types.isGeneratorObject(v) || types.isModuleNamespaceObject(v)) return this.repr(v);
    return this.fields(v, depth);
  }

  list(v, depth) {
    if (depth > MAX_DEPTH) throw new ValueFormError(`the value is nested deeper than ${MAX_DEPTH} levels`);
    const out = new Array(v.length);
    for (let i = 0; i < v.length; i++) out[i] = this.any(v[i], depth + 1);
    return '[' + out.join() + ']';
  }

  fields(v, depth) {
    if (typeof v.toJSON === 'function') return this.any(v.toJSON(), depth + 1);
    const keys = Object.keys(v);
    if (keys.includes('$'))
      return `{"$":"map","v":[${keys.map((k) => `[${quote(k)},${this.any(v[k], depth + 3)}]`).join()}]}`;
    const out = [];
    for (const k of keys) out.push(this.put(quote(k)) + ':' + this.any(v[k], depth + 1));
    return '{' + out.join() + '}';
  }

  /** What an error says, and its own fields: code, cause, errors. */
  error(v, depth) {
    const own = Object.keys(v).concat(['cause', 'errors'].filter((k) => Object.hasOwn(v, k) && !Object.keys(v).includes(k)));
    const more = own.filter((k) => k !== 'message' && k !== 'name' && k !== 'stack').map((k) => `[${quote(k)},${this.any(v[k], depth + 3)}]`);
    const [name, message, stack] = [v.name, v.message, cleanStack(String(v.stack ?? ''))].map((x) => quote(String(x)));
    return this.put(`{"$":"error","class":${name},"message":${message},"stack":${stack}${more.length ? `,"fields":[${more.join()}]` : ''}}`);
  }

  binary(v) {
    const raw = types.isAnyArrayBuffer(v) ? Buffer.from(v) : Buffer.from(v.buffer, v.byteOffset, v.byteLength);
    const isApart = this.columns && raw.length >= THRESHOLD;
    if (!isApart && raw.length * 4 / 3 > this.bytes)
      throw new ValueFormError(`the value is too large (more than ${this.limit} bytes)`);
    const isShaped = Array.isArray(v.shape);
    const dtype = DTYPES[v.constructor?.name] ?? (isShaped && v instanceof Uint8Array ? 'uint8' : undefined);
    const content = isApart ? this.columns.add(dtype ?? 'uint8', dtype ? v : raw) : `"${raw.toString('base64')}"`;
    if (!dtype) return this.put(`{"$":"bytes","v":${content}}`);
    const shape = isShaped ? v.shape : [v.length];
    const type = isShaped ? '' : `,"typed":"${v.constructor.name}"`;
    return this.put(`{"$":"array","dtype":"${dtype}","shape":${JSON.stringify(shape)},"v":${content}${type}}`);
  }

  repr(v) {
    let name = typeof v;
    try {
      name = String(v?.constructor?.name ?? name);
    } catch { /* whatever the object does */ }
    return this.put(`{"$":"repr","class":${quote(name)},"v":${quote(text(v))}}`);
  }
}

/** The JSON text of v; limit is the number of bytes it may have. replace: what
 *  to encode for an object. It says that v is the caller's own, so proxies are read. columns: takes large parts
 *  (cordon_columns.mjs). */
export function encode(v, limit = Infinity, replace = null, columns = null) {
  const e = new Encoder(limit, replace, columns);
  try {
    return e.any(v, 1);
  } catch (err) {
    if (err instanceof ValueFormError || err instanceof RangeError) throw err;
    e.bytes = limit; // a getter or toJSON of the code threw: use its printed text
    e.left = MAX_COUNT;
    return e.repr(v);
  }
}

/** The frames of an error's stack but ours. */
export function cleanStack(stack) {
  return stack.split('\n').filter((l) => !/^\s+at .*(cordon_guest\.mjs|node:inspector|node:vm|__cordon_)/.test(l))
    .join('\n');
}

/** The value as the language prints it, bounded. */
export function text(v) {
  let s;
  try {
    s = inspect(v, { maxStringLength: TEXT_BYTES });
    if (s.includes('cordon_guest.mjs')) s = cleanStack(s);
  } catch {
    s = `[${typeof v} that cannot be printed]`;
  }
  return s.length > TEXT_BYTES ? s.slice(0, TEXT_BYTES) + '...' : s;
}

function part(x) {
  if (typeof x === 'object' && x) x = x.v;
  if (x === null) return NaN;
  return typeof x === 'string' ? Number(x.replace('inf', 'Infinity').replace('nan', 'NaN')) : x;
}

function vector(v, decode, forms) {
  if (v.v instanceof Column) return v.v.vector(v, forms);
  const one = {
    float: part, duration: part, complex: (x) => x.map(part),
    date: (x) => forms.date({ v: x }), datetime: (x) => forms.datetime({ v: x }),
  }[v.t] ?? decode;
  return v.v.map((x) => (x === null ? null : one(x)));
}

/** The bytes of a form, with memory of their own. */
export const bytes = (v) => (v.v instanceof Column ? Buffer.from(v.v.values) : Buffer.from(v.v, 'base64'));

const FORMS = {
  int: (v) => BigInt(v.v),
  float: (v) => part(v.v),
  na: () => null,
  bytes: (v) => bytes(v),
  list: (v) => v.v.list(),
  date: (v) => new Date(v.v),
  datetime: (v) => new Date(v.v),
  time: (v) => v.v,
  duration: (v) => part(v.v),
  decimal: (v) => v.v,
  complex: (v) => v.v.map(part),
  tuple: (v, decode) => v.v.map(decode),
  set: (v, decode) => new Set(v.v.map(decode)),
  map: (v, decode) => new Map(v.v.map(([k, x]) => [decode(k), decode(x)])),
  vec: vector,
  factor: (v) => (v.v instanceof Column ? v.v.list() : v.v).map((c) => (c === null ? null : v.levels[c - 1])),
  array(v) {
    const type = TYPED[v.dtype];
    if (!type) return v;
    const raw = v.v instanceof Column ? v.v.typed(v) : new type(Uint8Array.from(Buffer.from(v.v, 'base64')).buffer);
    const out = v.typed === 'Uint8ClampedArray' ? new Uint8ClampedArray(raw.buffer) : raw;
    if (!v.typed) Object.defineProperty(out, 'shape', { value: v.shape });
    return out;
  },
  attr(v, decode, forms) {
    const base = v.v;
    if (base?.$ !== 'array' || base.dimnames?.length !== 1 || !base.dimnames[0]) return decode(base);
    const cells = FORMS.array(base); // a table of R's, or what tapply() gives
    if (cells.length !== base.dimnames[0].length) throw new ValueFormError('the names of an array do not fit it');
    return Object.fromEntries(base.dimnames[0].map((n, i) => [String(n), cells[i]]));
  },
  lang: (v) => v.text,
  env: (v) => v.v,
  s4: (v, decode) => Object.fromEntries(v.slots.map(([k, x]) => [k, decode(x)])),
  handle: (v) => new Handle(v.id, v.class ?? '', v.v ?? ''),
  record: (v, decode) => Object.fromEntries(v.names.map((n, i) => [n, decode(v.v[i])])),
  struct: (v, decode) => Object.fromEntries(v.names.map((n, i) => [n, decode(v.columns[i])])),
  index: (v, decode) => decode(v.v),
  /** The values; the index and the name are properties of the array. */
  series(v, decode) {
    const out = decode(v.v);
    if (v.index !== undefined) Object.defineProperty(out, 'index', { value: decode(v.index) });
    if (v.name !== undefined) Object.defineProperty(out, 'name', { value: decode(v.name) });
    return out;
  },
  error(v, decode) {
    const out = v.class === 'AggregateError' ? new AggregateError([], v.message) :
      new (Object.hasOwn(ERRORS, v.class) ? ERRORS[v.class] : Error)(v.message);
    if (out.name !== v.class) Object.defineProperty(out, 'name', { value: v.class, enumerable: true, configurable: true, writable: true });
    Object.defineProperty(out, 'stack', { value: v.stack, configurable: true, writable: true });
    for (const [k, x] of v.fields ?? []) {
      const enumerable = k !== 'cause' && k !== 'errors';
      Object.defineProperty(out, k, { value: decode(x), enumerable, configurable: true, writable: true });
    }
    return out;
  },
  frame: (v, decode) => Object.fromEntries(v.names.map((n, i) => [String(decode(n)), decode(v.columns[i])])),
  repr: (v) => v.v,
};

/** A function that gives the value of parsed JSON. own: forms that the caller decodes itself. isClient: what comes is a
 *  guest's, and a form that is none stays the object that it is. */
export function decoder(own = {}, isClient = false) {
  const forms = Object.assign(Object.create(null), FORMS, own); // without names such as toString
  const read = (v) => {
    try {
      return forms[v.$](v, decode, forms);
    } catch (e) {
      if (!isClient) throw e;
      return v;
    }
  };
  const decode = (v) => {
    if (Array.isArray(v)) return v.map(decode);
    if (v === null || typeof v !== 'object') return v;
    if (typeof v.$ === 'string') return forms[v.$] ? read(v) : v;
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, decode(x)]));
  };
  return decode;
}

export const decode = decoder();

const bare = /"[^"\\]*(?:\\.[^"\\]*)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** Parses one line; integers that a number cannot hold become BigInt forms. */
export function parse(line) {
  if (/[[,:]\s*-?\d{16}/.test(line))
    line = line.replace(bare, (t) => (t[0] === '"' || Number.isSafeInteger(Number(t)) ? t : `{"$":"int","v":"${t}"}`));
  return JSON.parse(line);
}
