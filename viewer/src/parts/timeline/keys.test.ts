import { expect, test } from "vitest";
import { isHeld, keyAction } from "./keys";

test("W, A, S and D move for as long as they are down, upper or lower case", () => {
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

test("arrows and brackets go to slices with the same name", () => {
  expect(keyAction({ key: "ArrowRight" })).toBe("next");
  expect(keyAction({ key: "]" })).toBe("next");
  expect(keyAction({ key: "[" })).toBe("previous");
});

test("Shift reverses the direction of gaps", () => {
  expect(keyAction({ key: "g" })).toBe("next-gap");
  expect(keyAction({ key: "G", shiftKey: true })).toBe("previous-gap");
});

test("the browser keeps its shortcuts", () => {
  expect(keyAction({ key: "f", ctrlKey: true })).toBeNull();
  expect(keyAction({ key: "l", metaKey: true })).toBeNull();
  expect(keyAction({ key: "ArrowLeft", altKey: true })).toBeNull();
});

test("other keys, and names of inherited properties, do nothing", () => {
  for (const key of ["x", "Tab", "constructor", "toString"]) expect(keyAction({ key })).toBeNull();
});
