// The page's only way to the data: one method per request. Answers are decoded here (answers.ts), so nothing behind this file
// sees a value that it does not expect.

import * as answers from "./answers";
import { type Decoder, decodeAnswer } from "./decode";
import { type Params, type Source, StoredSource } from "./source";
import { parseTiles, type TileAnswer } from "./tiles";

export interface Listing {
  trace?: string; // id of the trace about to be shown, or "first": a server with many traces (TensorBoard) loads it then
  waitMs?: number; // the server may hold the answer this long, until that trace is loaded
}

export async function listTraces(source: Source, { trace, waitMs }: Listing = {}, signal?: AbortSignal) {
  const params = source.stored || trace === undefined ? undefined : { trace, wait_ms: waitMs };
  return decodeAnswer("traces", answers.traceList, await source.json("traces", params, signal));
}

export class TraceClient {
  constructor(
    readonly source: Source,
    readonly id: number,
    readonly name: string,
    readonly steps: "" | "light" = "", // light: the light steps of a recording that has full ones, too
  ) {}

  // The same trace, or its light steps.
  of(steps: answers.OfSteps): TraceClient {
    return steps ? new TraceClient(this.source, this.id, this.name, steps) : this;
  }
  light(signal?: AbortSignal) {
    return this.get("light", answers.lightSteps, undefined, signal);
  }
  overview(signal?: AbortSignal) {
    return this.get("overview", answers.overview, undefined, signal);
  }
  diagnose(signal?: AbortSignal) {
    return this.get("diagnose", answers.diagnosis, undefined, signal);
  }
  explain(findingId: string, signal?: AbortSignal) {
    return this.get(`explain/${encodeURIComponent(findingId)}`, answers.explanation, undefined, signal);
  }
  // Parameters are the verb's flags, in snake_case: `report("ops", {group_by_input_shape: true})`.
  report(verb: string, params?: Params, signal?: AbortSignal) {
    return this.get(`report/${verb}`, answers.report, params, signal);
  }
  lanes(signal?: AbortSignal) {
    return this.get("lanes", answers.lanes, undefined, signal);
  }
  async tiles(level: number, first: number, count: number, lanes: readonly number[], signal?: AbortSignal) {
    const params = { level, first, count, lanes: lanes.join(",") };
    return this.decodeTiles(await this.source.bytes(this.path("tiles"), params, signal), level);
  }
  // Every tile that a stored report holds.
  *storedTiles(): Generator<TileAnswer> {
    if (!(this.source instanceof StoredSource)) return;
    for (const bytes of this.source.allBytes(`${this.path("tiles")}?`)) yield this.decodeTiles(bytes);
  }
  counters(fromNs: number, toNs: number, bins: number, tracks: readonly number[], signal?: AbortSignal) {
    const params = { from_ns: Math.round(fromNs), to_ns: Math.round(toNs), bins, tracks: tracks.join(",") };
    return this.get("counters", answers.counterBins, params, signal);
  }
  slice(ref: string, signal?: AbortSignal) {
    return this.get(`slice/${ref}`, answers.sliceDetail, undefined, signal);
  }
  range(fromNs: number, toNs: number, lanes?: readonly number[], signal?: AbortSignal) {
    const params = { from_ns: Math.round(fromNs), to_ns: Math.round(toNs), lanes: lanes?.join(",") };
    return this.get("range", answers.report, params, signal);
  }
  search(text: string, options: { exact?: boolean; bins?: number } = {}, signal?: AbortSignal) {
    const params = { text, exact: options.exact ?? false, bins: options.bins ?? 0 };
    return this.get("search", answers.searchAnswer, params, signal);
  }
  async find(
    text: string,
    options: { exact?: boolean; fromNs?: number; direction: 1 | -1 | 0; lane?: number },
    signal?: AbortSignal,
  ) {
    const { exact, fromNs, direction, lane } = options;
    const params = { text, exact: exact ?? false, from_ns: Math.round(fromNs ?? 0), direction, lane };
    return (await this.get("find", answers.findAnswer, params, signal)).slice;
  }
  async gap(fromNs: number, direction: 1 | -1, lane?: number, signal?: AbortSignal) {
    const params = { from_ns: Math.round(fromNs), direction, lane };
    return (await this.get("gap", answers.gapAnswer, params, signal)).gap;
  }
  flame(params: Params, signal?: AbortSignal) {
    return this.get("flame", answers.flame, params, signal);
  }
  memoryCurve(params: Params, signal?: AbortSignal) {
    return this.get("memory/curve", answers.memoryCurve, params, signal);
  }
  memoryAlive(device: string, atNs: number, signal?: AbortSignal) {
    return this.get("memory/alive", answers.report, { device, at_ns: Math.round(atNs) }, signal);
  }
  memorySegments(device: string, atNs: number, signal?: AbortSignal) {
    return this.get("memory/segments", answers.memorySegments, { device, at_ns: Math.round(atNs) }, signal);
  }
  async sql(query: string, rows = 1000, signal?: AbortSignal) {
    const path = this.path("sql");
    return decodeAnswer(path, answers.report, await this.source.post(path, { query, rows }, signal));
  }

  private async get<T>(what: string, decode: Decoder<T>, params?: Params, signal?: AbortSignal): Promise<T> {
    const path = this.path(what);
    return decodeAnswer(path, decode, await this.source.json(path, params, signal));
  }

  private decodeTiles(bytes: ArrayBuffer, level?: number): TileAnswer {
    return decodeAnswer(this.path("tiles"), () => parseTiles(bytes, level), bytes);
  }

  private path(what: string): string {
    return `t/${this.id}${this.steps && `.${this.steps}`}/${what}`;
  }
}
