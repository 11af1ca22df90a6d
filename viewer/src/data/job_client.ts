// Requests about a job of many ranks. A one-file report holds a few answers to each; there the windows are the whole job.

import { report } from "./answers";
import { type Decoder, decodeAnswer } from "./decode";
import * as answers from "./job_answers";
import type { Params, Source } from "./source";

const kCells = 256; // of a side of the heat map
const kListed = 100;

export interface AxisWindow {
  fromNs: number;
  toNs: number;
}

export class JobClient {
  constructor(readonly source: Source) {}

  report(rows: number, signal?: AbortSignal) {
    return this.get("report", report, { rows }, signal);
  }
  layout(signal?: AbortSignal) {
    return this.get("layout", answers.jobLayout, undefined, signal);
  }
  heat(value: string, signal?: AbortSignal) {
    return this.get("heat", answers.heatMap, { value, rows: kCells, columns: kCells }, signal);
  }
  collectives(window: AxisWindow | null, order: string, signal?: AbortSignal) {
    const range = window && !this.source.stored ? rounded(window) : {};
    return this.get("collectives", answers.collectiveList, { ...range, order, rows: kListed }, signal);
  }
  arrivals(id: number, signal?: AbortSignal) {
    return this.get("arrivals", answers.arrivals, { id }, signal);
  }
  timeline(ranks: readonly number[], window: AxisWindow, bins: number, signal?: AbortSignal) {
    const params = this.source.stored ? undefined : { ...rounded(window), bins, ranks: ranks.join(",") };
    return this.get("timeline", answers.jobTimeline, params, signal);
  }

  private async get<T>(what: string, decode: Decoder<T>, params?: Params, signal?: AbortSignal): Promise<T> {
    const path = `ranks/${what}`;
    return decodeAnswer(path, decode, await this.source.json(path, params, signal));
  }
}

function rounded(window: AxisWindow): Params {
  return { from_ns: Math.floor(window.fromNs), to_ns: Math.ceil(window.toNs) };
}
