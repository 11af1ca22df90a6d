// The timeline's keyboard shortcuts, and their help texts. Pure: maps a key to the name of an action.

export const kTimelineKeys: [string, string][] = [
  ["W S", "zoom in and out at the pointer"],
  ["A D", "pan left and right"],
  ["F", "fit the range or selection, or the whole trace"],
  ["M", "mark the selected slice or gap as a range"],
  ["← → or [ ]", "previous and next slice with the same name"],
  ["↑ ↓", "parent and first child"],
  ["L", "longest slice with the same name"],
  ["G ⇧G", "next and previous idle gap on a device"],
  [", .", "previous and next step"],
  ["V", "toggle compact rows"],
  ["/", "search; Enter and ⇧Enter go to the next and previous match"],
  ["Esc", "clear the range, then the selection, then the search"],
  ["Ctrl+wheel", "zoom (or pinch with two fingers)"],
  ["⇧drag", "mark a range (or drag on the ruler); drag its edges to adjust it"],
  ["drag", "pan; ⇧wheel pans sideways"],
  ["double-click", "fit a slice"],
];

// Continue for as long as the key is down.
export type HeldAction = "zoom-in" | "zoom-out" | "pan-left" | "pan-right";

export type KeyAction =
  | HeldAction
  | "fit"
  | "mark"
  | "previous"
  | "next"
  | "parent"
  | "child"
  | "longest"
  | "next-gap"
  | "previous-gap"
  | "next-step"
  | "previous-step"
  | "search"
  | "compact"
  | "clear";

const kActions: Record<string, KeyAction> = {
  w: "zoom-in",
  s: "zoom-out",
  a: "pan-left",
  d: "pan-right",
  f: "fit",
  m: "mark",
  arrowleft: "previous",
  arrowright: "next",
  "[": "previous",
  "]": "next",
  arrowup: "parent",
  arrowdown: "child",
  l: "longest",
  g: "next-gap",
  ",": "previous-step",
  ".": "next-step",
  "/": "search",
  v: "compact",
  escape: "clear",
};

export interface KeyPress {
  key: string;
  ctrlKey?: boolean;
  metaKey?: boolean;
  altKey?: boolean;
  shiftKey?: boolean;
}

// Keys with Ctrl, Alt or Meta belong to the browser.
export function keyAction(press: KeyPress): KeyAction | null {
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  const key = press.key.toLowerCase();
  if (key === "g" && press.shiftKey) return "previous-gap";
  return Object.hasOwn(kActions, key) ? kActions[key] : null;
}

export function isHeld(action: KeyAction): action is HeldAction {
  return action === "zoom-in" || action === "zoom-out" || action === "pan-left" || action === "pan-right";
}
