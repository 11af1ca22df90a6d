// What keys do in the timeline; the help lists the same. Pure: a key becomes the name of an action.

export const kTimelineKeys: [string, string][] = [
  ["W S", "zoom in and out at the mouse"],
  ["A D", "pan left and right"],
  ["F", "fit the range or selection, else the whole trace"],
  ["M", "mark the selected slice or gap as a range"],
  ["← → or [ ]", "previous and next of the same name"],
  ["↑ ↓", "parent and first child"],
  ["L", "longest of the same name"],
  ["G ⇧G", "next and previous gap on a device"],
  [", .", "previous and next step"],
  ["V", "compact rows and back"],
  ["/", "search; Enter and ⇧Enter go to the next and previous hit"],
  ["Esc", "clear range, then selection, then search"],
  ["Ctrl+wheel", "zoom; so does a pinch of two fingers"],
  ["⇧drag", "mark a range; so does a drag on the ruler. Its edges can be dragged"],
  ["drag", "pan; ⇧wheel pans sideways"],
  ["double-click", "fit a slice"],
];

// Go on as long as the key is down.
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

// Keys with Ctrl, Alt or Meta are the browser's.
export function keyAction(press: KeyPress): KeyAction | null {
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  const key = press.key.toLowerCase();
  if (key === "g" && press.shiftKey) return "previous-gap";
  return Object.hasOwn(kActions, key) ? kActions[key] : null;
}

export function isHeld(action: KeyAction): action is HeldAction {
  return action === "zoom-in" || action === "zoom-out" || action === "pan-left" || action === "pan-right";
}
