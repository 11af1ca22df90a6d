// Requests about the traces together. What there is to ask depends on the server: its list of traces names the panes that it
// has answers for.

import * as answers from "./answers";
import { type Decoder, decodeAnswer } from "./decode";
import type { Params, Source } from "./source";

const kRows = 10_000; // of each table

// Ids of the traces on either side of a comparison.
export interface Sides {
  before: readonly number[];
  after: readonly number[];
}

export class SetClient {
  constructor(
    readonly source: Source,
    readonly list: answers.TraceList,
  ) {}

  compare(sides: Sides, signal?: AbortSignal) {
    return this.get("compare", answers.report, { ...paramsOf(sides), rows: kRows }, signal);
  }
  compareFlame(sides: Sides, by: string, bins: number, signal?: AbortSignal) {
    return this.get("compare/flame", answers.flameDifference, { ...paramsOf(sides), by, bins }, signal);
  }
  runs(by: string, signal?: AbortSignal) {
    return this.get("runs", answers.report, { by, rows: kRows }, signal);
  }

  private async get<T>(path: string, decode: Decoder<T>, params?: Params, signal?: AbortSignal): Promise<T> {
    return decodeAnswer(path, decode, await this.source.json(path, params, signal));
  }
}

function paramsOf(sides: Sides): Params {
  return { before: sides.before.join(","), after: sides.after.join(",") };
}
