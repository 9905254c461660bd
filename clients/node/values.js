// Values across the wall (docs/values.md): tagged JSON, data only, both ways.

const INT_MIN = -(2n ** 63n), INT_MAX = 2n ** 63n - 1n;
const MAX_DEPTH = 62;
const TYPED = {
  Int8Array: "int8", Uint8Array: "uint8", Int16Array: "int16", Uint16Array: "uint16", Int32Array: "int32",
  Uint32Array: "uint32", BigInt64Array: "int64", BigUint64Array: "uint64", Float32Array: "float32", Float64Array: "float64",
};
const ARRAYS = {
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array,
  uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float64: Float64Array,
};

/** An array of numbers with a shape: numpy.ndarray, R's matrix. */
export class NDArray {
  constructor(data, shape) {
    this.data = data;
    this.shape = shape;
  }
}

const bytes = (view) => Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("base64");

function number(v) {
  if (Number.isFinite(v)) return v;
  return { $: "float", v: Number.isNaN(v) ? "nan" : v > 0 ? "inf" : "-inf" };
}

/** The JSON form of a value. */
export function encode(v, depth = 0, seen = []) {
  if (depth > MAX_DEPTH) throw new RangeError("the value is nested too deeply");
  switch (typeof v) {
    case "number": return number(v);
    case "string": return v.isWellFormed?.() === false ? v.toWellFormed() : v;
    case "boolean": return v;
    case "undefined": return null;
    case "bigint":
      return v >= BigInt(Number.MIN_SAFE_INTEGER) && v <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(v) : { $: "int", v: String(v) };
    case "function": case "symbol": return { $: "repr", class: typeof v, v: String(v).slice(0, 1000) };
  }
  if (v === null) return null;
  if (seen.includes(v)) throw new TypeError("the value contains itself");
  return object(v, depth, [...seen, v]);
}

function object(v, depth, seen) {
  const inner = (x) => encode(x, depth + 1, seen);
  if (Array.isArray(v)) return v.map(inner);
  if (v instanceof Uint8Array) return { $: "bytes", v: bytes(v) };
  if (v instanceof ArrayBuffer) return { $: "bytes", v: bytes(new Uint8Array(v)) };
  if (v instanceof NDArray) return { $: "array", dtype: TYPED[v.data.constructor.name], shape: v.shape, v: bytes(v.data) };
  if (ArrayBuffer.isView(v) && TYPED[v.constructor.name]) return { $: "array", dtype: TYPED[v.constructor.name], shape: [v.length], v: bytes(v) };
  if (v instanceof Date) return { $: "datetime", v: v.toISOString().replace("Z", "+00:00") };
  if (v instanceof Set) return { $: "set", v: [...v].map(inner) };
  if (v instanceof Map) return { $: "map", v: [...v].map(([k, x]) => [inner(k), inner(x)]) };
  const entries = Object.entries(v);
  if (Object.hasOwn(v, "$")) return { $: "map", v: entries.map(([k, x]) => [k, inner(x)]) };
  return Object.fromEntries(entries.map(([k, x]) => [k, inner(x)]));
}

const float = (x) => (typeof x === "string" ? { nan: NaN, inf: Infinity, "-inf": -Infinity }[x] : x);

function item(t, x) {
  if (x === null) return null;
  if (t === "float" || t === "duration") return float(x);
  if (t === "complex") return x.map(float);
  if (t === "datetime") return new Date(x);
  return decode(x);
}

function array(v) {
  const raw = Buffer.from(v.v, "base64");
  const Type = ARRAYS[v.dtype];
  if (!Type) return v;
  const data = new Type(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.byteLength));
  return new NDArray(data, v.shape);
}

const FORMS = {
  int: (v) => BigInt(v.v),
  float: (v) => float(v.v),
  na: () => null,
  bytes: (v) => new Uint8Array(Buffer.from(v.v, "base64")),
  date: (v) => v.v,
  time: (v) => v.v,
  datetime: (v) => new Date(v.v),
  duration: (v) => v.v,
  decimal: (v) => v.v,
  complex: (v) => v.v.map((x) => (typeof x === "object" ? float(x.v) : x)),
  tuple: (v) => v.v.map(decode),
  set: (v) => new Set(v.v.map(decode)),
  map: (v) => new Map(v.v.map(([k, x]) => [decode(k), decode(x)])),
  vec: (v) => v.v.map((x) => item(v.t, x)),
  factor: (v) => v.v.map((i) => (i === null ? null : v.levels[i - 1])),
  array,
  frame: (v) => Object.fromEntries(v.names.map((n, i) => [String(decode(n)), decode(v.columns[i])])),
  repr: (v) => v.v,
};

/** The value of a JSON form. Integers beyond 2^53 arrive as bigint where they were tagged. */
export function decode(v) {
  if (v === null || typeof v !== "object") return v;
  if (Array.isArray(v)) return v.map(decode);
  if (!Object.hasOwn(v, "$")) return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, decode(x)]));
  const form = FORMS[v.$];
  return form ? form(v) : v;
}
