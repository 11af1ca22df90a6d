// What the server says about a job of many ranks: `ranks/...` of docs/viewer-protocol.md. Times are on the axis that all ranks
// share, in ns; ranks are their global numbers.

import { array, boolean, bulk, type Decoded, Mismatch, number, object, oneOf, refine, string, tuple } from "./decode";

const heatValue = oneOf("step", "compute", "wait", "late", "memory");
export type HeatValue = Decoded<typeof heatValue>;

const jobRank = tuple<[rank: number, host: number, trace: number]>(number, number, number); // trace: -1 when it is not here
const jobStep = tuple<[step: number, startNs: number, endNs: number]>(number, number, number);

const jobGroup = object({
  id: number,
  kind: string,
  description: string,
  pair: boolean, // a sender and a receiver
  waitNs: number,
  transferNs: number,
  ranks: bulk(number),
});
export type JobGroup = Decoded<typeof jobGroup>;

export const jobLayout = refine(
  object({
    fromNs: number,
    toNs: number,
    hosts: array(string),
    ranks: bulk(jobRank),
    firstRanks: array(number), // to look at first
    heatValues: array(heatValue),
    steps: bulk(jobStep),
    groups: array(jobGroup),
  }),
  ({ ranks, hosts }) => {
    const wrong = ranks.findIndex((each) => !Array.isArray(each) || each.length !== 3 || !(each[1] >= 0 && each[1] < hosts.length));
    return wrong < 0 ? null : new Mismatch("[rank, host, trace]", ranks[wrong], `ranks[${wrong}]`);
  },
);
export type JobLayout = Decoded<typeof jobLayout>;

// Row by row; -1 where a rank did not record the step. A row may stand for several ranks, a column for several steps: the
// largest of their values.
export const heatMap = refine(
  object({
    value: heatValue,
    rankCount: number,
    stepCount: number,
    ranksARow: number,
    stepsAColumn: number,
    ranks: bulk(number),
    steps: bulk(number),
    cells: bulk(number),
  }),
  ({ ranks, steps, cells }) =>
    cells.length === ranks.length * steps.length
      ? null
      : new Mismatch(`${ranks.length} x ${steps.length} cells`, cells, "cells"),
);
export type HeatMap = Decoded<typeof heatMap>;

const kCollective = {
  id: number,
  op: string,
  group: number,
  kind: string,
  ranks: number, // that are here
  bytes: number, // 0: not known
  startNs: number, // first arrival
  lastArrivalNs: number,
  endNs: number,
  waitNs: number, // of all its ranks
  fromRank: number, // that the others waited for; of a send, the sender
};
const collective = object(kCollective);
export type Collective = Decoded<typeof collective>;

export const collectiveList = object({ total: number, collectives: array(collective) });
export type CollectiveList = Decoded<typeof collectiveList>;

// `traceNs`: the arrival in the rank's own trace.
const arrival = tuple<[rank: number, startNs: number, endNs: number, traceNs: number]>(number, number, number, number);
export const arrivals = object({ ...kCollective, arrivals: bulk(arrival) });
export type Arrivals = Decoded<typeof arrivals>;

// Waits until `movesNs`. `id` is -1, and `movesNs` the start, where nobody can say how long it waited.
const lanePiece = tuple<
  [startNs: number, movesNs: number, endNs: number, id: number, op: number, group: number, sends: number]
>(number, number, number, number, number, number, number);
export type LanePiece = Decoded<typeof lanePiece>;

const laneBin = tuple<[waitNs: number, moveNs: number]>(number, number);

const rankLane = object({
  rank: number,
  traceFromNs: number, // the window in the rank's own trace
  traceToNs: number,
  pieces: bulk(lanePiece), // either these
  bins: bulk(laneBin), // or these, when pieces would be too many
});
export type RankLane = Decoded<typeof rankLane>;

// 0 work, 1 data moving, 2 a collective of which waiting and moving cannot be told apart.
const pathPiece = tuple<[rank: number, startNs: number, endNs: number, kind: number]>(number, number, number, number);
export type PathPiece = Decoded<typeof pathPiece>;

export const jobTimeline = object({
  fromNs: number,
  toNs: number,
  ops: array(string),
  lanes: array(rankLane),
  path: bulk(pathPiece),
});
export type JobTimeline = Decoded<typeof jobTimeline>;
