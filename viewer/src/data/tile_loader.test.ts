import { expect, test } from "vitest";
import { TraceClient } from "./client";
import type { Params, Source } from "./source";
import { buildTiles } from "./tile_builder";
import { kMaxLanesPerRequest, kMaxTilesPerRequest, planRequests, TileLoader } from "./tile_loader";
import { TileStore } from "./tile_store";

const all = () => true;

test("lanes that miss the same tiles share a request", () => {
  const requests = planRequests(
    { level: 2, first: 4, last: 7, lanes: [1, 2, 3] },
    (lane, index) => lane !== 2 || index > 5,
  );
  expect(requests).toEqual([
    { level: 2, first: 4, count: 4, lanes: [1, 3] },
    { level: 2, first: 6, count: 2, lanes: [2] },
  ]);
});

test("a request stays within the protocol's limits", () => {
  const lanes = Array.from({ length: 150 }, (_, i) => i);
  const requests = planRequests({ level: 0, first: 0, last: 39, lanes }, all);
  expect(Math.max(...requests.map((r) => r.count))).toBe(kMaxTilesPerRequest);
  expect(Math.max(...requests.map((r) => r.lanes.length))).toBe(kMaxLanesPerRequest);
  const tiles = requests.reduce((sum, r) => sum + r.count * r.lanes.length, 0);
  expect(tiles).toBe(40 * 150);
});

test("tiles that are there are not requested again", () => {
  expect(planRequests({ level: 1, first: 0, last: 3, lanes: [0] }, () => false)).toEqual([]);
});

interface Asked {
  level: unknown;
  signal: AbortSignal;
  answer: (bytes: ArrayBuffer) => void;
}

// A loader whose requests are answered by the test.
function fakeLoader() {
  const asked: Asked[] = [];
  const bytes = (_path: string, params: Params, signal: AbortSignal) =>
    new Promise<ArrayBuffer>((answer) => asked.push({ level: params.level, signal, answer }));
  const store = new TileStore(1e9, 20);
  const errors: (string | null)[] = [];
  const loader = new TileLoader(
    new TraceClient({ bytes } as unknown as Source, 0, "x"),
    store,
    () => {},
    (error) => errors.push(error),
  );
  return { loader, store, asked, errors };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

test("a request that the view no longer needs is aborted, and its answer dropped", async () => {
  const { loader, store, asked } = fakeLoader();
  loader.want([{ level: 3, first: 0, last: 1, lanes: [0] }]);
  loader.want([{ level: 2, first: 8, last: 9, lanes: [0] }]);
  expect(asked.map((a) => [a.level, a.signal.aborted])).toEqual([
    [3, true],
    [2, false],
  ]);
  asked[0].answer(buildTiles(3, [{ lane: 0, index: 0 }], {}));
  await settle();
  expect(store.tileCount).toBe(0);
});

test("tiles missing from the answer are empty, and not requested again", async () => {
  const { loader, store, asked } = fakeLoader();
  const range = { level: 3, first: 0, last: 2, lanes: [0, 1] };
  loader.want([range]);
  asked[0].answer(buildTiles(3, [{ lane: 0, index: 1 }], {}));
  await settle();
  expect(store.tileCount).toBe(6);
  loader.want([range]);
  expect(asked.length).toBe(1);
});

test("a damaged answer is reported, and nothing of it is kept", async () => {
  const { loader, store, asked, errors } = fakeLoader();
  loader.want([{ level: 3, first: 0, last: 0, lanes: [0] }]);
  asked[0].answer(new ArrayBuffer(8));
  await settle();
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(/^t\/0\/tiles: expected at least 16 bytes, got 8 bytes/);
  expect(store.tileCount).toBe(0);
});
