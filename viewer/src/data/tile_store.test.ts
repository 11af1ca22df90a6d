import { expect, test } from "vitest";
import { buildTiles } from "./tile_builder";
import { TileStore, type TileSpan } from "./tile_store";
import { emptyTile, parseTiles } from "./tiles";

const kRootLevel = 10;

function put(store: TileStore, level: number, index: number, name = 1, text = "a name"): void {
  const slices = [{ startNs: index * 512 * 2 ** level, durationNs: 1, name }];
  store.put(parseTiles(buildTiles(level, [{ lane: 0, index, slices }], { [name]: text })));
}

test("the least recently drawn tile is evicted first when the budget is spent", () => {
  const store = new TileStore(1e9, kRootLevel);
  put(store, 2, 0);
  const each = store.bytes;
  const small = new TileStore(3 * each, kRootLevel);
  for (const index of [0, 1, 2]) put(small, 2, index);
  small.get(2, 0, 0);
  put(small, 2, 3);
  expect([0, 1, 2, 3].map((index) => small.has(2, 0, index))).toEqual([true, false, true, true]);
  expect(small.bytes).toBeLessThanOrEqual(3 * each);
});

test("after many tiles, bytes and names are within the budget", () => {
  const store = new TileStore(20_000, kRootLevel);
  for (let i = 0; i < 5000; ++i) put(store, 1, i, i, `name ${i} ${"x".repeat(100)}`);
  expect(store.bytes).toBeLessThanOrEqual(20_000);
  expect(store.nameCount).toBe(store.tileCount);
});

// In a browser an empty tile takes more than 100 bytes, and one with a single slice more than 1000.
test("small and empty tiles count with the memory of their objects", () => {
  const budget = 1_000_000;
  const empty = new TileStore(budget, kRootLevel);
  const small = new TileStore(budget, kRootLevel);
  for (let i = 0; i < 10_000; ++i) {
    empty.put({ level: 1, tiles: [emptyTile(1, 0, i)], names: new Map() });
    put(small, 1, i);
  }
  expect(empty.tileCount).toBeLessThanOrEqual(budget / 100);
  expect(empty.has(1, 0, 0)).toBe(false);
  expect(small.tileCount).toBeLessThanOrEqual(budget / 1000);
});

test("bytes are given back when a tile is replaced by an empty one", () => {
  const store = new TileStore(1e9, kRootLevel);
  store.put({ level: 2, tiles: [emptyTile(2, 0, 0)], names: new Map() });
  const empty = store.bytes;
  put(store, 2, 0);
  store.put({ level: 2, tiles: [emptyTile(2, 0, 0)], names: new Map() });
  expect(store.bytes).toBe(empty);
});

test("tiles of the whole trace are never evicted", () => {
  const store = new TileStore(500, kRootLevel);
  put(store, kRootLevel, 0);
  for (let i = 0; i < 50; ++i) put(store, 1, i);
  expect(store.has(kRootLevel, 0, 0)).toBe(true);
});

test("a name is kept as long as a tile uses it", () => {
  const store = new TileStore(1e9, kRootLevel);
  put(store, 2, 0, 7, "shared");
  put(store, 2, 1, 7, "shared");
  put(store, 2, 0, 8, "other");
  expect(store.name(7)?.text).toBe("shared");
  put(store, 2, 1, 8, "other");
  expect(store.name(7)).toBeUndefined();
});

function resolved(store: TileStore, level: number, index: number): [string, [number, number, number, number][]] {
  const out: TileSpan[] = [];
  const how = store.resolve(level, 0, index, kRootLevel + 2, out);
  return [how, out.map(({ tile, fromNs, toNs }) => [tile.level, tile.index, fromNs, toNs])];
}

test("the closest coarser tile stands in for a missing one, for its span only", () => {
  const store = new TileStore(1e9, kRootLevel);
  put(store, 5, 0);
  put(store, 3, 1);
  // Level 2: a tile is 2048 ns; tile 3 is the second half of tile 1 of level 3.
  expect(resolved(store, 2, 3)).toEqual(["coarser", [[3, 1, 6144, 8192]]]);
  expect(resolved(store, 2, 0)).toEqual(["coarser", [[5, 0, 0, 2048]]]);
});

test("neighbors that share a coarser tile become one span", () => {
  const store = new TileStore(1e9, kRootLevel);
  put(store, 5, 0);
  const out: TileSpan[] = [];
  for (const index of [0, 1, 2]) store.resolve(2, 0, index, kRootLevel, out);
  expect(out.map(({ fromNs, toNs }) => [fromNs, toNs])).toEqual([[0, 6144]]);
});

test("finer tiles that cover the span win over coarser ones", () => {
  const store = new TileStore(1e9, kRootLevel);
  put(store, 6, 0);
  put(store, 3, 0);
  put(store, 2, 2);
  put(store, 2, 3);
  expect(resolved(store, 4, 0)).toEqual([
    "finer",
    [
      [3, 0, 0, 4096],
      [2, 2, 4096, 6144],
      [2, 3, 6144, 8192],
    ],
  ]);
});

test("without a tile at any close level there is nothing to draw", () => {
  expect(resolved(new TileStore(1e9, kRootLevel), 2, 3)).toEqual(["none", []]);
});
