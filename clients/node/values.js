// Values across the wall (docs/values.md) as this client shows them. cordon_values.mjs has the rest, also for the guest.
import { Column } from "./cordon_columns.mjs";
import { bytes, decoder, encode as write, decode as plainly, Handle } from "./cordon_values.mjs";

export { Handle };

const TYPED = {
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

/** The typed array with its shape. */
const plain = (v) => (v instanceof NDArray ? Object.defineProperty(v.data.subarray(), "shape", { value: v.shape }) : v);

/** JSON text that is sent as it is, because JSON.stringify would write 1e20 as an integer and -0 as 0. */
export class Json {
  constructor(text) {
    this.text = text;
  }
}

/** A value as text for a message. */
export const valueText = (v, columns = null) => new Json(write(v, Infinity, plain, columns));

/** The JSON form of a value. */
export const encode = (v) => JSON.parse(write(v, Infinity, plain));

function array(v) {
  if (v.typed) return plainly(v); // of JavaScript's own
  const Type = TYPED[v.dtype];
  if (!Type) return v;
  if (v.v instanceof Column) return new NDArray(v.v.typed(v), v.shape);
  return new NDArray(new Type(Uint8Array.from(Buffer.from(v.v, "base64")).buffer), v.shape);
}

/** The value of a JSON form. */
export const decode = decoder({
  array,
  bytes: (v) => new Uint8Array(bytes(v)),
  date: (v) => v.v, // a Date would be an instant
}, true);
