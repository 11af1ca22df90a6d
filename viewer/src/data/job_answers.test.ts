// The decoders of a job against docs/viewer-protocol.md, and against answers that break its promises.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { decodeAnswer, type Decoder } from "./decode";
import * as answers from "./job_answers";

const kProtocol = readFileSync(new URL("../../../docs/viewer-protocol.md", import.meta.url), "utf8");

// The first JSON block after the request's name.
function example(request: string): Record<string, unknown> {
  const section = kProtocol.slice(kProtocol.indexOf("### A job of many ranks"));
  const block = /```json\n([^]*?)```/.exec(section.slice(section.indexOf(`\`/api/ranks/${request}`)));
  if (!block) throw new Error(`viewer-protocol.md has no example of ${request}`);
  return JSON.parse(block[1]) as Record<string, unknown>;
}

test.each<[string, Decoder<unknown>]>([
  ["layout", answers.jobLayout],
  ["heat", answers.heatMap],
  ["timeline", answers.jobTimeline],
  ["collectives", answers.collectiveList],
])("the protocol's example decodes: %s", (request, decode) => {
  expect(decodeAnswer(request, decode, example(request))).toBeTruthy();
});

test("arrivals are a collective with its ranks", () => {
  const [collective] = example("collectives").collectives as unknown[];
  const found = decodeAnswer("a", answers.arrivals, { ...(collective as object), arrivals: [[0, 1, 2, 3]] });
  expect(found.fromRank).toBe(1);
  expect(() => decodeAnswer("a", answers.arrivals, { ...(collective as object), arrivals: [[0, 1, 2]] })).toThrow(/arrivals\[0\]/);
});

test("a heat map has a cell for each rank and step", () => {
  expect(() => decodeAnswer("heat", answers.heatMap, { ...example("heat"), cells: [1, 2, 3] })).toThrow(/2 x 2 cells/);
});

test("a rank's host is one of the hosts", () => {
  const layout = { ...example("layout"), ranks: [[0, 0, 0], [1, 5, -1]] };
  expect(() => decodeAnswer("layout", answers.jobLayout, layout)).toThrow(/ranks\[1\]/);
});
