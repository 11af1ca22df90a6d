import { expect, test } from "vitest";
import {
  blend,
  contrast,
  fadedColors,
  kFadeSteps,
  kKindLabels,
  kLabelColors,
  packed,
  parseHex,
  sliceColor,
} from "./slice_colors";

const names = Array.from({ length: 200 }, (_, i) => `aten::op_${i}`);

test("labels keep AA contrast on every kind and name in both themes", () => {
  for (const theme of ["light", "dark"] as const) {
    const label = parseHex(kLabelColors[theme]);
    for (const [kind] of kKindLabels) {
      for (const name of names) expect(contrast(sliceColor(kind, name, theme), label)).toBeGreaterThanOrEqual(4.5);
    }
  }
});

test("slices stand out from the page in both themes", () => {
  for (const [theme, back] of [
    ["light", "#ffffff"],
    ["dark", "#1b1f27"],
  ] as const) {
    for (const [kind] of kKindLabels) {
      for (const name of names) expect(contrast(sliceColor(kind, name, theme), parseHex(back))).toBeGreaterThan(1.3);
    }
  }
});

test("a name always has the same color, and names of a kind differ", () => {
  expect(sliceColor(0, "aten::mm", "light")).toEqual(sliceColor(0, "aten::mm", "light"));
  const distinct = new Set(names.map((name) => sliceColor(0, name, "light").join()));
  expect(distinct.size).toBeGreaterThan(100);
});

test("an unknown kind has a color, too", () => {
  expect(sliceColor(99, "x", "dark")).toHaveLength(3);
});

test("fading goes from the background to the full color", () => {
  const colors = fadedColors(16, "gemm", "light", [255, 255, 255]);
  expect(colors[0]).toBe(0xffffffff);
  expect(colors[kFadeSteps]).toBe(packed(sliceColor(16, "gemm", "light")));
  expect(blend([0, 0, 0], [100, 200, 50], 0.5)).toEqual([50, 100, 25]);
  expect(packed([0x11, 0x22, 0x33])).toBe(0xff332211);
});
