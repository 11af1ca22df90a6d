// The page's only way to the data: one method a request, answers typed and in lowerCamel.

import { camelKeys } from "./convert";
import type { Params, Source } from "./source";
import type {
  CounterBins,
  Flame,
  FoundSlice,
  Gap,
  Lanes,
  MemoryCurve,
  MemorySegments,
  Overview,
  Report,
  SearchAnswer,
  SliceDetail,
  TraceList,
} from "./types";

export interface Listing {
  trace?: string; // the id of what is about to be shown, or "first": a server with many traces (TensorBoard) loads it then
  waitMs?: number; // the answer may wait so long for that trace to be loaded
}

export async function listTraces(source: Source, wanted: Listing = {}, signal?: AbortSignal): Promise<TraceList> {
  const { trace, waitMs } = wanted;
  const params = source.stored || trace === undefined ? undefined : { trace, wait_ms: waitMs };
  return camelKeys(await source.json("traces", params, signal)) as TraceList;
}

export class TraceClient {
  constructor(
    readonly source: Source,
    readonly id: number,
    readonly name: string,
  ) {}

  overview(signal?: AbortSignal) {
    return this.get<Overview>("overview", undefined, signal);
  }
  // The object of `firelane diagnose --json`, keys in lowerCamel.
  diagnose(signal?: AbortSignal) {
    return this.get<Record<string, unknown>>("diagnose", undefined, signal);
  }
  explain(findingId: string, signal?: AbortSignal) {
    return this.get<{ id: string; text: string }>(`explain/${encodeURIComponent(findingId)}`, undefined, signal);
  }
  // Parameters are the flags of the verb, in snake_case: `report("ops", {group_by_input_shape: true})`.
  report(verb: string, params?: Params, signal?: AbortSignal) {
    return this.get<Report>(`report/${verb}`, params, signal);
  }
  lanes(signal?: AbortSignal) {
    return this.get<Lanes>("lanes", undefined, signal);
  }
  tiles(level: number, first: number, count: number, lanes: readonly number[], signal?: AbortSignal) {
    return this.source.bytes(`t/${this.id}/tiles`, { level, first, count, lanes: lanes.join(",") }, signal);
  }
  counters(fromNs: number, toNs: number, bins: number, tracks: readonly number[], signal?: AbortSignal) {
    const params = { from_ns: Math.round(fromNs), to_ns: Math.round(toNs), bins, tracks: tracks.join(",") };
    return this.get<CounterBins>("counters", params, signal);
  }
  slice(ref: string, signal?: AbortSignal) {
    return this.get<SliceDetail>(`slice/${ref}`, undefined, signal);
  }
  range(fromNs: number, toNs: number, lanes?: readonly number[], signal?: AbortSignal) {
    const params = { from_ns: Math.round(fromNs), to_ns: Math.round(toNs), lanes: lanes?.join(",") };
    return this.get<Report>("range", params, signal);
  }
  search(text: string, options: { exact?: boolean; bins?: number } = {}, signal?: AbortSignal) {
    const params = { text, exact: options.exact ?? false, bins: options.bins ?? 0 };
    return this.get<SearchAnswer>("search", params, signal);
  }
  async find(
    text: string,
    options: { exact?: boolean; fromNs?: number; direction: 1 | -1 | 0; lane?: number },
    signal?: AbortSignal,
  ): Promise<FoundSlice | null> {
    const { exact, fromNs, direction, lane } = options;
    const params = { text, exact: exact ?? false, from_ns: Math.round(fromNs ?? 0), direction, lane };
    return (await this.get<{ slice: FoundSlice | null }>("find", params, signal)).slice;
  }
  async gap(fromNs: number, direction: 1 | -1, lane?: number, signal?: AbortSignal): Promise<Gap | null> {
    return (await this.get<{ gap: Gap | null }>("gap", { from_ns: Math.round(fromNs), direction, lane }, signal)).gap;
  }
  flame(params: Params, signal?: AbortSignal) {
    return this.get<Flame>("flame", params, signal);
  }
  memoryCurve(params: Params, signal?: AbortSignal) {
    return this.get<MemoryCurve>("memory/curve", params, signal);
  }
  memoryAlive(device: string, atNs: number, signal?: AbortSignal) {
    return this.get<Report>("memory/alive", { device, at_ns: Math.round(atNs) }, signal);
  }
  memorySegments(device: string, atNs: number, signal?: AbortSignal) {
    return this.get<MemorySegments>("memory/segments", { device, at_ns: Math.round(atNs) }, signal);
  }
  async sql(query: string, rows = 1000, signal?: AbortSignal): Promise<Report> {
    return camelKeys(await this.source.post(`t/${this.id}/sql`, { query, rows }, signal)) as Report;
  }

  private async get<T>(what: string, params?: Params, signal?: AbortSignal): Promise<T> {
    return camelKeys(await this.source.json(`t/${this.id}/${what}`, params, signal)) as T;
  }
}
