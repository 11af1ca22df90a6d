// Fetches the tiles that a view needs, in batches and few at a time.
//
// `want()` is called with the tiles that the next frame would like, the most important first; missing ones are requested. Requests
// for tiles that the view has moved away from are aborted.

import type { TraceClient } from "./client";
import type { TileStore } from "./tile_store";
import { emptyTile } from "./tiles";

export const kMaxTilesPerRequest = 16;
export const kMaxLanesPerRequest = 64;
const kMaxRequests = 4;
const kRetryMs = 3000;

export interface TileRange {
  level: number;
  first: number;
  last: number;
  lanes: readonly number[];
}

export interface TileRequest {
  level: number;
  first: number;
  count: number;
  lanes: number[];
}

interface Running {
  request: TileRequest;
  control: AbortController;
}

export class TileLoader {
  private readonly running = new Set<Running>();
  private ranges: TileRange[] = [];
  private pausedUntil = 0;

  // `changed` is called when there is something new to draw, `failed` with an error message, or null when requests work again.
  constructor(
    private readonly trace: TraceClient,
    private readonly store: TileStore,
    private readonly changed: () => void,
    private readonly failed: (error: string | null) => void,
  ) {}

  get busy(): boolean {
    return this.running.size > 0;
  }

  want(ranges: TileRange[]): void {
    this.ranges = ranges;
    for (const item of this.running) {
      if (!ranges.some((range) => overlaps(range, item.request))) {
        item.control.abort();
        this.running.delete(item);
      }
    }
    this.start();
  }

  stop(): void {
    this.ranges = [];
    for (const item of this.running) item.control.abort();
    this.running.clear();
  }

  private start(): void {
    if (performance.now() < this.pausedUntil) return;
    for (const range of this.ranges) {
      const missing = (lane: number, index: number) =>
        !this.store.has(range.level, lane, index) && !this.isRunning(range.level, lane, index);
      for (const request of planRequests(range, missing)) {
        if (this.running.size >= kMaxRequests) return;
        void this.run(request);
      }
    }
  }

  private isRunning(level: number, lane: number, index: number): boolean {
    for (const { request: r } of this.running) {
      if (r.level === level && index >= r.first && index < r.first + r.count && r.lanes.includes(lane)) return true;
    }
    return false;
  }

  private async run(request: TileRequest): Promise<void> {
    const item: Running = { request, control: new AbortController() };
    this.running.add(item);
    const { level, first, count, lanes } = request;
    try {
      const answer = await this.trace.tiles(level, first, count, lanes, item.control.signal);
      if (!this.running.delete(item)) return;
      this.store.put(answer);
      for (const lane of lanes) {
        for (let index = first; index < first + count; ++index) {
          if (!this.store.has(level, lane, index)) {
            this.store.put({ level, tiles: [emptyTile(level, lane, index)], names: new Map() });
          }
        }
      }
      this.failed(null);
    } catch (error) {
      if (!this.running.delete(item)) return;
      this.pausedUntil = performance.now() + kRetryMs;
      this.failed(error instanceof Error ? error.message : String(error));
      setTimeout(this.changed, kRetryMs + 50);
    }
    this.changed();
    this.start();
  }
}

function overlaps(range: TileRange, request: TileRequest): boolean {
  return range.level === request.level && request.first <= range.last && request.first + request.count > range.first;
}

// Lanes that miss the same tiles share a request.
export function planRequests(range: TileRange, missing: (lane: number, index: number) => boolean): TileRequest[] {
  const bySpan = new Map<string, TileRequest>();
  for (const lane of range.lanes) {
    let index = range.first;
    while (index <= range.last) {
      if (!missing(lane, index)) {
        index += 1;
        continue;
      }
      const first = index;
      while (index <= range.last && index - first < kMaxTilesPerRequest && missing(lane, index)) index += 1;
      const at = `${first}:${index - first}`;
      const shared = bySpan.get(at);
      if (shared) shared.lanes.push(lane);
      else bySpan.set(at, { level: range.level, first, count: index - first, lanes: [lane] });
    }
  }
  const out: TileRequest[] = [];
  for (const request of bySpan.values()) {
    for (let i = 0; i < request.lanes.length; i += kMaxLanesPerRequest) {
      out.push({ ...request, lanes: request.lanes.slice(i, i + kMaxLanesPerRequest) });
    }
  }
  return out;
}
