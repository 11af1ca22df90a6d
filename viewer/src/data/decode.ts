// Decoders check what came over the wire against what the page relies on, and rename snake_case fields to lowerCamel.
//
// A decoder is a function from unknown JSON to a typed value; it throws `Mismatch` with the path to the first wrong field.
// Fields that no decoder names are ignored, so a newer server may send more. Long arrays (bins, rows) are checked by shape and
// length, not element by element.

export type Decoder<T> = (value: unknown) => T;
export type Decoded<D> = D extends Decoder<infer T> ? T : never;

// `path` is that of the protocol: `steps.rows[3].start_ns`.
export class Mismatch extends Error {
  constructor(
    expected: string,
    value: unknown,
    public path = "",
  ) {
    super(`expected ${expected}, got ${describe(value)}`);
  }
}

function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (value instanceof ArrayBuffer) return `${value.byteLength} bytes`;
  if (value !== null && typeof value === "object") return "an object";
  return JSON.stringify(value).slice(0, 60);
}

// Runs `decode` for one field or element, and puts `step` in front of the path of what it throws.
function inside<T>(step: string, decode: Decoder<T>, value: unknown): T {
  try {
    return decode(value);
  } catch (error) {
    if (error instanceof Mismatch) error.path = step + (/^(\[|$)/.test(error.path) ? "" : ".") + error.path;
    throw error;
  }
}

export const anything: Decoder<unknown> = (value) => value;
export const string = primitive<string>("string", "a string");
export const number = primitive<number>("number", "a number");
export const boolean = primitive<boolean>("boolean", "true or false");

function primitive<T>(type: string, expected: string): Decoder<T> {
  return (value) => {
    if (typeof value !== type) throw new Mismatch(expected, value);
    return value as T;
  };
}

export function oneOf<const T extends string>(...words: T[]): Decoder<T> {
  const expected = words.map((word) => `"${word}"`).join(" or ");
  return (value) => {
    if (!words.includes(value as T)) throw new Mismatch(expected, value);
    return value as T;
  };
}

export function nullable<T>(decode: Decoder<T>): Decoder<T | null> {
  return (value) => (value === null ? null : decode(value));
}

// The field may be missing.
export function optional<T>(decode: Decoder<T>): Decoder<T | undefined> {
  return (value) => (value === undefined ? undefined : decode(value));
}

export function array<T>(decode: Decoder<T>): Decoder<T[]> {
  return (value) => list(value).map((item, i) => inside(`[${i}]`, decode, item));
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Mismatch("an array", value);
  return value;
}

// A long array whose first element stands for all of them: bins of a curve, rows of a table.
export function bulk<T>(first: Decoder<T>): Decoder<T[]> {
  return (value) => {
    const items = list(value);
    if (items.length > 0) inside("[0]", first, items[0]);
    return items as T[];
  };
}

export function tuple<T extends unknown[]>(...items: { [K in keyof T]: Decoder<T[K]> }): Decoder<T> {
  return (value) => {
    const found = list(value);
    if (found.length !== items.length) throw new Mismatch(`an array of ${items.length}`, value);
    return items.map((decode, i) => inside(`[${i}]`, decode, found[i])) as T;
  };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Mismatch("an object", value);
  return value as Record<string, unknown>;
}

// Keys are data and stay as they are: args of a slice, memory categories.
export function record<T>(decode: Decoder<T>): Decoder<Record<string, T>> {
  return (value) =>
    Object.fromEntries(Object.entries(fieldsOf(value)).map(([key, item]) => [key, inside(key, decode, item)]));
}

type Shape = Record<string, Decoder<unknown>>;

// `object({ startNs: number })` reads `{"start_ns": 5}`.
export function object<S extends Shape>(shape: S): Decoder<{ [K in keyof S]: Decoded<S[K]> }> {
  const fields = Object.entries(shape).map(
    ([name, decode]) => [name, name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), decode] as const,
  );
  return (value) => {
    const from = fieldsOf(value);
    const out: Record<string, unknown> = {};
    for (const [name, key, decode] of fields) {
      out[name] = inside(key, decode, Object.hasOwn(from, key) ? from[key] : undefined);
    }
    return out as { [K in keyof S]: Decoded<S[K]> };
  };
}

// A further condition on a value that has the right shape; `check` returns what is wrong, or null.
export function refine<T>(decode: Decoder<T>, check: (value: T) => Mismatch | null): Decoder<T> {
  return (value) => {
    const out = decode(value);
    const wrong = check(out);
    if (wrong) throw wrong;
    return out;
  };
}

// Decodes the answer to a request. The error is one line that a user can act on or send to us.
export function decodeAnswer<T>(request: string, decode: Decoder<T>, value: unknown): T {
  try {
    return decode(value);
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    const where = error.path === "" ? request : `${request}: ${error.path}`;
    throw new Error(`${where}: ${error.message}. The page and the server may be different versions: reload the page.`);
  }
}
