// cordon_columns.mjs - binary columns (docs/values.md): the large parts of a value, beside its JSON. The client has a copy of
// this file (tools/copies).
import { endianness } from 'node:os';

export const THRESHOLD = 65536; // a part of a value that has fewer bytes stays in the JSON
export const LIST_MIN = 8192; // elements of an array
export const isPossible = endianness() === 'LE';
const ALIGN = 64;
const PAD = new Uint8Array(ALIGN);
const TYPES = {
  bool8: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
  complex64: Float32Array, complex128: Float64Array, utf8: Int32Array, large_utf8: BigInt64Array,
};
const SCALES = { s: 1, ms: 1e3, us: 1e6, ns: 1e9 };
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** Collects columns. The parts refer to the values' own memory, and are written out later, in order. */
export class Writer {
  bytes = 0;
  parts = [];
  table = [];

  /** limit: of the bytes; fail(text) gives what is thrown beyond it. */
  constructor(limit = Infinity, fail = (text) => new RangeError(text)) {
    this.limit = limit;
    this.fail = fail;
  }

  get header() {
    return { bytes: this.bytes, columns: this.table };
  }

  #part(view) {
    const pad = (ALIGN - (this.bytes % ALIGN)) % ALIGN;
    if (this.bytes + pad + view.byteLength > this.limit)
      throw this.fail(`the value is too large (more than ${this.limit} bytes); the policy's value_bytes raises the limit`);
    if (pad) this.parts.push(PAD.subarray(0, pad));
    const at = this.bytes + pad;
    this.parts.push(bytesOf(view));
    this.bytes = at + view.byteLength;
    return at;
  }

  #end(column, values) {
    column.values = this.#part(values);
    this.table.push(column);
    return `{"$buf":${this.table.length - 1}}`;
  }

  /** A reference to a column of these values, as JSON text. */
  add(type, view) {
    return this.#end({ type, count: view.length }, view);
  }

  texts(list) {
    const data = Buffer.from(list.join(''));
    const offsets = new Int32Array(list.length + 1);
    let at = 0;
    for (let i = 0; i < list.length; i++) offsets[i + 1] = at += Buffer.byteLength(list[i]);
    if (at !== data.length) return null; // halves of a surrogate pair met when they were joined
    return this.#end({ type: 'utf8', count: list.length, offsets: this.#part(offsets), bytes: data.length }, data);
  }

  /** An array of numbers, or of texts; null: its elements are something else. */
  sequence(list) {
    const type = typeof list[0];
    if (type !== 'number' && type !== 'string') return null;
    let integers = true, small = true;
    for (let i = 0; i < list.length; i++) {
      const x = list[i];
      if (typeof x !== type) return null;
      if (type === 'string') continue;
      if (!Number.isSafeInteger(x) || Object.is(x, -0)) integers = false;
      else if (x !== (x | 0)) small = false;
    }
    if (type === 'string') return this.texts(list);
    if (!integers) return this.add('float64', Float64Array.from(list));
    return small ? this.add('int32', Int32Array.from(list)) : this.add('int64', BigInt64Array.from(list, BigInt));
  }
}

/** One column of a message that arrived: views of its memory. */
export class Column {
  constructor(buffer, { type, count, values, validity, offsets, bytes }) {
    const Type = TYPES[type];
    if (!Type) throw new TypeError(`there is no form for a binary column of type ${type}`);
    this.type = type;
    this.count = count;
    this.validity = validity === undefined ? null : new Uint8Array(buffer, validity, Math.ceil(count / 8));
    this.offsets = offsets === undefined ? null : new Type(buffer, offsets, count + 1);
    this.values = this.offsets ? Buffer.from(buffer, values, bytes)
      : new Type(buffer, values, type.startsWith('complex') ? 2 * count : count);
  }

  isThere(i) {
    return this.validity === null || (this.validity[i >> 3] >> (i & 7) & 1) === 1;
  }

  at(i) {
    const { values } = this;
    switch (this.type) {
      case 'bool8': return values[i] !== 0;
      case 'utf8': return values.toString('utf8', this.offsets[i], this.offsets[i + 1]);
      case 'large_utf8': return values.toString('utf8', Number(this.offsets[i]), Number(this.offsets[i + 1]));
      case 'complex64': case 'complex128': return [values[2 * i], values[2 * i + 1]];
      case 'int64': case 'uint64': return values[i] <= SAFE && values[i] >= -SAFE ? Number(values[i]) : values[i];
      default: return values[i];
    }
  }

  /** The values; null where one is missing. */
  list() {
    if (this.validity === null && /^(float|u?int(8|16|32)$)/.test(this.type)) return Array.from(this.values);
    return Array.from({ length: this.count }, (_, i) => (this.isThere(i) ? this.at(i) : null));
  }

  /** The array that a vec is. forms: how the caller shows dates. */
  vector(v, forms) {
    const scale = this.type === 'float64' ? 1 : SCALES[v.unit] ?? 1;
    const iso = (ms) => new Date(ms).toISOString().replace('Z', '+00:00');
    const one = {
      date: (x) => forms.date({ v: new Date(x * 864e5).toISOString().slice(0, 10) }),
      datetime: (x) => forms.datetime({ v: iso(Number(x) / scale * 1000) }),
      duration: (x) => Number(x) / scale,
    }[v.t];
    const list = this.list();
    return one ? list.map((x) => (x === null || Number.isNaN(x) ? null : one(x))) : list;
  }

  /** The typed array that an array form is, with memory of its own. */
  typed(v) {
    let out = this.values.slice();
    if (this.validity) // of R's integers: only a number that is not an integer can be missing
      out = Float64Array.from({ length: this.count }, (_, i) => (this.isThere(i) ? Number(this.at(i)) : NaN));
    if (v.shape.reduce((a, b) => a * b, 1) !== this.count) throw new RangeError('the shape of an array does not match its length');
    return v.order === 'F' && v.shape.length > 1 ? inOrder(out, v.shape) : out;
  }
}

/** From Fortran's order, which R has, to C's. */
function inOrder(from, shape) {
  const out = new from.constructor(from.length), rank = shape.length, index = new Array(rank).fill(0);
  for (let i = 0; i < from.length; i++) {
    let to = 0;
    for (let d = 0; d < rank; d++) to = to * shape[d] + index[d];
    out[to] = from[i];
    for (let d = 0; d < rank && ++index[d] === shape[d]; d++) index[d] = 0;
  }
  return out;
}

/** The form with its columns in place of the references, which only tagged forms have. Each can be used once: so a small
 *  message cannot make a large value many times over. */
export function resolve(form, header, buffer) {
  const used = new Set();
  const column = (i) => {
    if (!Number.isInteger(i) || used.has(i) || !header.columns[i]) throw new RangeError('a binary column is missing or used twice');
    used.add(i);
    return new Column(buffer, header.columns[i]);
  };
  const isRef = (x) => x !== null && typeof x === 'object' && x.$buf !== undefined && Object.keys(x).length === 1;
  const walk = (v) => {
    if (Array.isArray(v)) return v.map(walk);
    if (v === null || typeof v !== 'object') return v;
    const isTagged = v.$ !== undefined;
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, isTagged && isRef(x) ? column(x.$buf) : walk(x)]));
  };
  return walk(form);
}
