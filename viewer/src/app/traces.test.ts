// Which trace is shown, and what the server is told about it.

import { expect, test } from "vitest";
import type { TraceEntry } from "../data/answers";
import { listTraces } from "../data/client";
import { StoredSource } from "../data/source";
import type { Params, Source } from "../data/source";
import { addedTrace, shownTrace } from "./traces";

const entry = (id: number): TraceEntry => ({ id, name: `run/${id}`, state: "ready", bytesDone: 0, bytesTotal: 0, error: null });

test("the link's trace is shown, or the first one where it is gone or not named", () => {
  const list = [entry(7), entry(3)];
  expect(shownTrace(list, "3", "7")?.id).toBe(3);
  expect(shownTrace(list, "99", "7")?.id).toBe(7);
  expect(shownTrace(list, undefined, undefined)?.id).toBe(7);
  expect(shownTrace([], "3", "7")).toBe(undefined);
});

test("a newer trace at the top of the list does not change what is shown", () => {
  expect(shownTrace([entry(9), entry(7), entry(3)], undefined, "7")?.id).toBe(7);
});

test("a trace that appears later is announced, the latest first, until it has been shown", () => {
  const list = [entry(9), entry(8), entry(7)];
  expect(addedTrace(list, new Set([7]))?.id).toBe(9);
  expect(addedTrace(list, new Set([7, 9]))?.id).toBe(8);
  expect(addedTrace(list, new Set([7, 8, 9]))).toBe(undefined);
});

test("the server is told which trace is shown; a report is read as it was stored", async () => {
  const asked: (Params | undefined)[] = [];
  const server = {
    stored: false,
    json: (_path: string, params?: Params) => {
      asked.push(params);
      return Promise.resolve({ version: "1", traces: [] });
    },
  } as unknown as Source;
  await listTraces(server, { trace: "first" });
  await listTraces(server, { trace: "3", waitMs: 250 });
  await listTraces(server);
  expect(asked).toEqual([{ trace: "first" }, { trace: "3", wait_ms: 250 }, undefined]);
  const stored = new StoredSource({ traces: { json: { version: "1", traces: [{ id: 0, name: "x", state: "ready", bytes_done: 5, bytes_total: 5, error: null }] } } });
  expect((await listTraces(stored, { trace: "first" })).traces[0].bytesDone).toBe(5);
});
