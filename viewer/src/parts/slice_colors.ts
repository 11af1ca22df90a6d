// Colors of slices: the kind picks a band of hues, the name a hue within it. Kinds are told apart at a glance, a name has the
// same color in every lane, trace and session, and every label keeps AA contrast on its slice.

import type { Theme } from "../page/theme";

export type Rgb = readonly [number, number, number];

interface Band {
  label: string;
  hue: number; // middle of the band, degrees
  width: number;
  saturation: number; // percent, in the light theme
}

const kOther: Band = { label: "other", hue: 220, width: 10, saturation: 8 };

// By the protocol's number for a kind.
const kBands: Record<number, Band> = {
  0: { label: "op", hue: 214, width: 44, saturation: 62 },
  1: { label: "annotation", hue: 276, width: 26, saturation: 45 },
  2: { label: "python", hue: 138, width: 54, saturation: 30 },
  3: { label: "runtime", hue: 40, width: 18, saturation: 72 },
  4: { label: "driver", hue: 52, width: 10, saturation: 50 },
  5: { label: "overhead", hue: 0, width: 8, saturation: 18 },
  6: { label: "span", hue: 252, width: 20, saturation: 26 },
  7: kOther,
  16: { label: "kernel", hue: 172, width: 34, saturation: 52 },
  17: { label: "memcpy", hue: 332, width: 22, saturation: 62 },
  18: { label: "memset", hue: 312, width: 10, saturation: 42 },
  19: { label: "sync", hue: 6, width: 12, saturation: 62 },
  20: { label: "event", hue: 90, width: 20, saturation: 30 },
  21: { label: "collective", hue: 24, width: 12, saturation: 82 },
  22: { label: "annotation", hue: 276, width: 26, saturation: 45 },
  23: kOther,
};

export const kKindLabels: [number, string][] = Object.entries(kBands).map(([kind, band]) => [Number(kind), band.label]);

export function kindLabel(kind: number): string {
  return (kBands[kind] ?? kOther).label;
}

// The same for a kind's name in the protocol.
export function kindText(name: string): string {
  return { copy: "memcpy", set: "memset" }[name] ?? name;
}

// FNV-1a over UTF-16 units: quick, stable, well spread.
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // Similar names have similar low bits: mix them.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  return (hash ^ (hash >>> 12)) >>> 0;
}

// Text on slices.
export const kLabelColors: Record<Theme, string> = { light: "#161b24", dark: "#f3f5f9" };

// All slices of a theme look about equally bright, whatever their hue; the name varies it a little.
const kLuminance: Record<Theme, readonly [number, number]> = { light: [0.5, 0.64], dark: [0.085, 0.145] };

export function sliceColor(kind: number, name: string, theme: Theme): Rgb {
  const band = kBands[kind] ?? kOther;
  const hash = hashText(name);
  const across = (hash & 0xffff) / 0xffff - 0.5;
  const tint = ((hash >>> 16) & 0xff) / 0xff;
  const hue = (band.hue + across * band.width + 360) % 360;
  const [least, most] = kLuminance[theme];
  const saturation = theme === "dark" ? band.saturation * 0.7 : band.saturation;
  return withLuminance(hue, saturation, least + (most - least) * tint);
}

// Equal HSL lightness does not look equally bright: search for the lightness that has this luminance.
function withLuminance(hue: number, saturation: number, target: number): Rgb {
  let low = 0;
  let high = 100;
  for (let i = 0; i < 10; ++i) {
    const middle = (low + high) / 2;
    if (luminance(hslToRgb(hue, saturation, middle)) < target) low = middle;
    else high = middle;
  }
  return hslToRgb(hue, saturation, (low + high) / 2);
}

function hslToRgb(hue: number, saturation: number, lightness: number): Rgb {
  const s = saturation / 100;
  const l = lightness / 100;
  const reach = s * Math.min(l, 1 - l);
  const part = (n: number) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

export function blend(back: Rgb, front: Rgb, share: number): Rgb {
  const mix = (i: 0 | 1 | 2) => Math.round(back[i] + (front[i] - back[i]) * share);
  return [mix(0), mix(1), mix(2)];
}

// As ImageData stores it on a little-endian machine: 0xAABBGGRR.
export function packed([r, g, b]: Rgb): number {
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

export function parseHex(text: string): Rgb {
  const value = Number.parseInt(text.replace("#", ""), 16);
  return [(value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
}

// WCAG's relative luminance, 0 to 1.
function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// WCAG's contrast ratio of two colors, 1 to 21.
export function contrast(a: Rgb, b: Rgb): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

export const kFadeSteps = 16;

// A name's color, packed, from the background (0) to full strength (kFadeSteps). Density, and what does not match a search, is faded.
export function fadedColors(kind: number, name: string, theme: Theme, back: Rgb): Uint32Array {
  const full = sliceColor(kind, name, theme);
  return Uint32Array.from({ length: kFadeSteps + 1 }, (_, step) => packed(blend(back, full, step / kFadeSteps)));
}
