import { expect, test } from "vitest";
import { buildTiles } from "./tile_builder";
import { emptyTile, parseTiles, refText } from "./tiles";

const answer = () =>
  buildTiles(
    3,
    [
      {
        lane: 7,
        index: 5,
        slices: [
          { startNs: 20480, durationNs: 100, ref: 12, name: 1, row: 2, kind: 0 },
          { startNs: 20500, durationNs: 9, ref: 0x80000003, name: 2, row: 3, kind: 16 },
          { startNs: 20600, durationNs: 8, ref: 14, name: 1, row: 0, kind: 3 },
        ],
        runs: [{ startNs: 20488, durationNs: 8, name: 3, row: 1, kind: 16, busy: 0.25, count: 9 }],
      },
      { lane: 8, index: 5 },
    ],
    { 1: "aten::mm", 2: "größe ⚡", 3: "" },
  );

test("slices, runs and names are read as written, with odd counts as well", () => {
  const { level, tiles, names } = parseTiles(answer());
  expect(level).toBe(3);
  expect(tiles.map((tile) => [tile.lane, tile.index, tile.sliceCount, tile.runCount])).toEqual([
    [7, 5, 3, 1],
    [8, 5, 0, 0],
  ]);
  const tile = tiles[0];
  expect([...tile.startNs]).toEqual([20480, 20500, 20600]);
  expect([...tile.durationNs]).toEqual([100, 9, 8]);
  expect([...tile.ref].map(refText)).toEqual(["h12", "d3", "h14"]);
  expect([...tile.row]).toEqual([2, 3, 0]);
  expect([...tile.kind]).toEqual([0, 16, 3]);
  expect([...tile.runBusy]).toEqual([0.25]);
  expect([...tile.runSlices]).toEqual([9]);
  expect([...tile.names].sort()).toEqual([1, 2, 3]);
  expect(Object.fromEntries(names)).toEqual({ 1: "aten::mm", 2: "größe ⚡", 3: "" });
});

test("a truncated answer is rejected, wherever it ends", () => {
  const whole = answer();
  for (let bytes = 0; bytes < whole.byteLength; ++bytes) {
    expect(() => parseTiles(whole.slice(0, bytes)), `${bytes} bytes`).toThrow();
  }
});

test("counts that exceed the answer are rejected before anything is allocated", () => {
  const bytes = answer();
  new DataView(bytes).setUint32(16 + 4, 0xffffffff, true);
  expect(() => parseTiles(bytes)).toThrow(/at least \d+ bytes/);
});

test("another format is rejected by name", () => {
  expect(() => parseTiles(new TextEncoder().encode('{"error": "no such trace"}').buffer)).toThrow(/expected "FLT1", got/);
});

test("tiles of another level than requested are rejected", () => {
  expect(() => parseTiles(answer(), 4)).toThrow(/expected level 4, got 3/);
  expect(parseTiles(answer(), 3).tiles).toHaveLength(2);
});

test("a ref's highest bit tells device from host", () => {
  expect([0, 12, 0x80000000, 0x80000007].map(refText)).toEqual(["h0", "h12", "d0", "d7"]);
});

test("empty tiles share their columns", () => {
  const tile = emptyTile(4, 2, 9);
  expect([tile.level, tile.lane, tile.index, tile.sliceCount, tile.runCount]).toEqual([4, 2, 9, 0, 0]);
  expect(tile.startNs).toBe(emptyTile(4, 2, 10).startNs);
  const sent = parseTiles(buildTiles(4, [{ lane: 2, index: 9 }], {})).tiles;
  expect(sent).toEqual([tile]);
  expect(sent[0].startNs).toBe(tile.startNs);
});
