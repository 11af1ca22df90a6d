// Fetches the tiles that a view needs: in batches, few at a time, dropping those that the view has left behind.
//
// `want()` is called with what the next frame would like; whatever is missing is asked for, the first wish first. An answer that
// nobody wants any more is not waited for.

import type { TraceClient } from "./client";
import { emptyTile } from "./tiles";
import type { TileStore } from "./tile_store";

export const kMaxTilesARequest = 16;
export const kMaxLanesARequest = 64;
const kMaxRequests = 4;
const kRetryMs = 3000;

export interface TileWish {
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
  private wishes: TileWish[] = [];
  private pausedUntil = 0;

  // `changed` is called when there is something new to draw, `failed` with a line for people (null: fine again).
  constructor(
    private readonly trace: TraceClient,
    private readonly store: TileStore,
    private readonly changed: () => void,
    private readonly failed: (error: string | null) => void,
  ) {}

  get busy(): boolean {
    return this.running.size > 0;
  }

  want(wishes: TileWish[]): void {
    this.wishes = wishes;
    for (const item of this.running) {
      if (!wishes.some((wish) => overlaps(wish, item.request))) {
        item.control.abort();
        this.running.delete(item);
      }
    }
    this.start();
  }

  stop(): void {
    this.wishes = [];
    for (const item of this.running) item.control.abort();
    this.running.clear();
  }

  private start(): void {
    if (performance.now() < this.pausedUntil) return;
    for (const wish of this.wishes) {
      const missing = (lane: number, index: number) =>
        !this.store.has(wish.level, lane, index) && !this.isRunning(wish.level, lane, index);
      for (const request of planRequests(wish, missing)) {
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

function overlaps(wish: TileWish, request: TileRequest): boolean {
  return wish.level === request.level && request.first <= wish.last && request.first + request.count > wish.first;
}

// Lanes that miss the same stretch share a request.
export function planRequests(wish: TileWish, missing: (lane: number, index: number) => boolean): TileRequest[] {
  const byStretch = new Map<string, TileRequest>();
  for (const lane of wish.lanes) {
    let index = wish.first;
    while (index <= wish.last) {
      if (!missing(lane, index)) {
        index += 1;
        continue;
      }
      const first = index;
      while (index <= wish.last && index - first < kMaxTilesARequest && missing(lane, index)) index += 1;
      const at = `${first}:${index - first}`;
      const shared = byStretch.get(at);
      if (shared) shared.lanes.push(lane);
      else byStretch.set(at, { level: wish.level, first, count: index - first, lanes: [lane] });
    }
  }
  const out: TileRequest[] = [];
  for (const request of byStretch.values()) {
    for (let i = 0; i < request.lanes.length; i += kMaxLanesARequest) {
      out.push({ ...request, lanes: request.lanes.slice(i, i + kMaxLanesARequest) });
    }
  }
  return out;
}
