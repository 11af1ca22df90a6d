import { expect, test } from "vitest";
import { isHeld, keyAction } from "./keys";

test("W, A, S and D move as long as they are down, in either case", () => {
  for (const [key, action] of [
    ["w", "zoom-in"],
    ["S", "zoom-out"],
    ["a", "pan-left"],
    ["D", "pan-right"],
  ] as const) {
    expect(keyAction({ key })).toBe(action);
    expect(isHeld(action)).toBe(true);
  }
});

test("arrows and brackets walk along the same name", () => {
  expect(keyAction({ key: "ArrowRight" })).toBe("next");
  expect(keyAction({ key: "]" })).toBe("next");
  expect(keyAction({ key: "[" })).toBe("previous");
});

test("shift turns the gap around", () => {
  expect(keyAction({ key: "g" })).toBe("next-gap");
  expect(keyAction({ key: "G", shiftKey: true })).toBe("previous-gap");
});

test("the browser keeps its shortcuts", () => {
  expect(keyAction({ key: "f", ctrlKey: true })).toBeNull();
  expect(keyAction({ key: "l", metaKey: true })).toBeNull();
  expect(keyAction({ key: "ArrowLeft", altKey: true })).toBeNull();
});

test("other keys, and names that objects have by themselves, do nothing", () => {
  for (const key of ["x", "Tab", "constructor", "toString"]) expect(keyAction({ key })).toBeNull();
});
