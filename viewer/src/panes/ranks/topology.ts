// Which ranks work together: for a kind of group, the group of each rank, and its neighbours. Pure.

import type { JobGroup, JobLayout } from "../../data/job_answers";

export interface KindOfGroups {
  kind: string;
  groups: JobGroup[];
  waitNs: number;
  transferNs: number;
}

// Those that cost the most first.
export function kindsOf(layout: JobLayout): KindOfGroups[] {
  const kinds = new Map<string, KindOfGroups>();
  for (const group of layout.groups) {
    let kind = kinds.get(group.kind);
    if (!kind) kinds.set(group.kind, (kind = { kind: group.kind, groups: [], waitNs: 0, transferNs: 0 }));
    kind.groups.push(group);
    kind.waitNs += group.waitNs;
    kind.transferNs += group.transferNs;
  }
  return [...kinds.values()].sort((a, b) => b.waitNs + b.transferNs - (a.waitNs + a.transferNs));
}

export interface Placed {
  rank: number;
  trace: number; // -1: its trace is not here
  line: number; // a line for each host
  column: number;
  group: number; // which of the kind's sets of ranks; -1: none
}

// Ranks that are connected by groups of the kind are one set: the pairs of a pipeline are its stages in a row.
export function setsOf(groups: readonly JobGroup[]): Map<number, number> {
  const parent = new Map<number, number>();
  const root = (rank: number): number => {
    let at = rank;
    while (parent.get(at) !== at) at = parent.get(at)!;
    for (let each = rank; each !== at; ) {
      const next = parent.get(each)!;
      parent.set(each, at);
      each = next;
    }
    return at;
  };
  for (const { ranks } of groups) {
    for (const rank of ranks) if (!parent.has(rank)) parent.set(rank, rank);
    for (const rank of ranks) parent.set(root(rank), root(ranks[0]));
  }
  const numbers = new Map<number, number>();
  const out = new Map<number, number>();
  for (const rank of [...parent.keys()].sort((a, b) => a - b)) {
    const top = root(rank);
    if (!numbers.has(top)) numbers.set(top, numbers.size);
    out.set(rank, numbers.get(top)!);
  }
  return out;
}

// One line for each host; without names of hosts, lines of eight.
export function placeRanks(layout: JobLayout, groups: readonly JobGroup[]): Placed[] {
  const sets = setsOf(groups);
  const named = layout.hosts.length > 1 || layout.hosts[0] !== "";
  const filled = new Map<number, number>();
  return layout.ranks.map(([rank, host, trace], at) => {
    const line = named ? host : Math.floor(at / 8);
    const column = filled.get(line) ?? 0;
    filled.set(line, column + 1);
    return { rank, trace, line, column, group: sets.get(rank) ?? -1 };
  });
}
