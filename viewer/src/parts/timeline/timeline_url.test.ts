import { expect, test } from "vitest";
import { formatFragment, parseFragment } from "../../page/link";
import { fromUrlKeys, type TimelineUrl, toUrlKeys } from "./timeline_url";

const state: TimelineUrl = {
  view: { fromNs: 12, toNs: 3456 },
  scroll: 40,
  selected: "d7",
  range: { fromNs: 100, toNs: 200 },
  search: "<img src=x onerror=alert(1)> & more",
  filter: "stream 7",
  hidden: new Set(["l1", "c0"]),
  pinned: new Set(["l2"]),
  collapsed: new Set(["gpython, main\\x (1)", "l0"]),
  compact: true,
};

const through = (url: TimelineUrl) => {
  const keys = Object.fromEntries(Object.entries(toUrlKeys(url)).filter(([, value]) => value)) as Record<
    string,
    string
  >;
  return fromUrlKeys(parseFragment(formatFragment(keys)));
};

test("a link restores the whole view", () => {
  expect(through(state)).toEqual(state);
});

test("the default view needs no keys", () => {
  const plain: TimelineUrl = {
    view: null,
    scroll: 0,
    selected: "",
    range: null,
    search: "",
    filter: "",
    hidden: new Set(),
    pinned: new Set(),
    collapsed: null,
    compact: null,
  };
  expect(Object.values(toUrlKeys(plain)).every((value) => value === null)).toBe(true);
  expect(through(plain)).toEqual(plain);
});

test("an empty list of collapsed lanes differs from the default", () => {
  expect(through({ ...state, collapsed: new Set() }).collapsed).toEqual(new Set());
});

test("invalid values in a link are ignored", () => {
  const url = fromUrlKeys({
    "timeline.view": "9:3",
    "timeline.sel": "../secret",
    "timeline.y": "-5",
    "timeline.range": "a:b",
  });
  expect(url).toMatchObject({ view: null, selected: "", scroll: 0, range: null });
});

test("the same state is always the same link", () => {
  expect(formatFragment({ b: "1", a: "x y", c: "" })).toBe("#a=x+y&b=1");
});

test("names of inherited properties are ordinary keys", () => {
  expect(parseFragment("#__proto__=1&constructor=2")).toMatchObject({ constructor: "2" });
});
