import { expect, test } from "vitest";
import { anything, array, bulk, decodeAnswer, nullable, number, object, oneOf, optional, record, string, tuple } from "./decode";

const rows = object({
  startNs: number,
  state: oneOf("ready", "failed"),
  parent: nullable(object({ name: string })),
  children: array(object({ durationNs: number })),
  top: tuple(string, number),
  curve: bulk(nullable(number)),
  args: record(anything),
  reloadS: optional(number),
});

const right = () => ({
  start_ns: 1,
  state: "ready",
  parent: null,
  children: [{ duration_ns: 2 }],
  top: ["mm", 3],
  curve: [null, 5],
  args: { "Input Dims": [[1]], ev_idx: 3 },
  something_new: true,
});

const errorOf = (changes: Record<string, unknown>) => {
  try {
    decodeAnswer("t/0/rows", rows, { ...right(), ...changes });
  } catch (error) {
    return (error as Error).message.replace(/\. The page.*/, "");
  }
  return "";
};

test("fields get their lowerCamel names, keys that are data stay, unknown fields are ignored", () => {
  expect(decodeAnswer("t/0/rows", rows, right())).toEqual({
    startNs: 1,
    state: "ready",
    parent: null,
    children: [{ durationNs: 2 }],
    top: ["mm", 3],
    curve: [null, 5],
    args: { "Input Dims": [[1]], ev_idx: 3 },
    reloadS: undefined,
  });
});

test("an error names the request, the field in the protocol's words, what was expected and what came", () => {
  expect(errorOf({ start_ns: "1" })).toBe('t/0/rows: start_ns: expected a number, got "1"');
  expect(errorOf({ start_ns: undefined })).toBe("t/0/rows: start_ns: expected a number, got nothing");
  expect(errorOf({ state: "lost" })).toBe('t/0/rows: state: expected "ready" or "failed", got "lost"');
  expect(errorOf({ parent: { name: null } })).toBe("t/0/rows: parent.name: expected a string, got null");
  expect(errorOf({ children: [{ duration_ns: 2 }, {}] })).toBe(
    "t/0/rows: children[1].duration_ns: expected a number, got nothing",
  );
  expect(errorOf({ children: {} })).toBe("t/0/rows: children: expected an array, got an object");
  expect(errorOf({ top: ["mm"] })).toBe("t/0/rows: top: expected an array of 2, got an array of 1");
  expect(errorOf({ top: ["mm", null] })).toBe("t/0/rows: top[1]: expected a number, got null");
  expect(errorOf({ curve: ["x"] })).toBe('t/0/rows: curve[0]: expected a number, got "x"');
  expect(errorOf({ args: [] })).toBe("t/0/rows: args: expected an object, got an array of 0");
});

test("an answer that is not an object is reported by its request alone", () => {
  expect(() => decodeAnswer("traces", rows, null)).toThrow(/^traces: expected an object, got null\. The page and/);
});

test("inherited properties are not fields", () => {
  expect(() => decodeAnswer("x", object({ constructor: anything, toString: number }), {})).toThrow(/to_string: expected/);
});
