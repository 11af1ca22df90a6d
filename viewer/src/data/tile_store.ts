// The page's cache of tiles and names, with a budget of bytes: the least recently drawn tile is evicted first. The budget includes
// the memory of objects: most tiles of a zoomed-in view hold little or nothing, and there may be a million of them.
//
// Levels from `keepFromLevel` up are never evicted: they cover the whole trace with a handful of tiles per lane, and are drawn
// while finer ones load.

import { type Tile, type TileAnswer, tileSpanNs } from "./tiles";

export interface NameEntry {
  text: string;
  // What drawing computed for the name, to be reused in the next frame.
  drawn: unknown;
  uses: number;
}

// A tile to draw for a span of time: the exact one, or a coarser or finer one in its place.
export interface TileSpan {
  tile: Tile;
  fromNs: number;
  toNs: number;
}

const kDescentLevels = 3;
// Memory of a name besides its characters: its entry, and what drawing computes for it. Measured in Chromium 156.
const kNameObjectBytes = 500;

export class TileStore {
  private readonly tiles = new Map<string, Tile>();
  private readonly pool = new Map<number, NameEntry>();
  private usedBytes = 0;

  constructor(
    private readonly budgetBytes: number,
    readonly keepFromLevel: number,
  ) {}

  get bytes(): number {
    return this.usedBytes;
  }
  get tileCount(): number {
    return this.tiles.size;
  }
  get nameCount(): number {
    return this.pool.size;
  }

  has(level: number, lane: number, index: number): boolean {
    return this.tiles.has(key(level, lane, index));
  }

  // Also marks the tile as just used.
  get(level: number, lane: number, index: number): Tile | undefined {
    const at = key(level, lane, index);
    const tile = this.tiles.get(at);
    if (tile && level < this.keepFromLevel) {
      this.tiles.delete(at);
      this.tiles.set(at, tile);
    }
    return tile;
  }

  name(id: number): NameEntry | undefined {
    return this.pool.get(id);
  }

  put(answer: TileAnswer): void {
    for (const tile of answer.tiles) {
      this.drop(key(tile.level, tile.lane, tile.index));
      for (const id of tile.names) this.retain(id, answer.names.get(id) ?? "");
      this.tiles.set(key(tile.level, tile.lane, tile.index), tile);
      this.usedBytes += tile.memoryBytes;
    }
    if (this.usedBytes <= this.budgetBytes) return;
    for (const [at, tile] of this.tiles) {
      if (this.usedBytes <= this.budgetBytes) break;
      if (tile.level < this.keepFromLevel) this.drop(at);
    }
  }

  // What to draw for the tile (level, lane, index): the tile itself, or finer ones that cover it, or the closest coarser one, or
  // whatever finer ones there are.
  resolve(
    level: number,
    lane: number,
    index: number,
    maxLevel: number,
    out: TileSpan[],
  ): "exact" | "finer" | "coarser" | "none" {
    const span = tileSpanNs(level);
    const fromNs = index * span;
    const own = this.get(level, lane, index);
    if (own) {
      out.push({ tile: own, fromNs, toNs: fromNs + span });
      return "exact";
    }
    if (this.covered(level, lane, index, kDescentLevels)) {
      this.descend(level, lane, index, kDescentLevels, out);
      return "finer";
    }
    for (let up = 1; level + up <= maxLevel; ++up) {
      const tile = this.get(level + up, lane, Math.floor(index / 2 ** up));
      if (!tile) continue;
      const last = out[out.length - 1];
      if (last?.tile === tile && last.toNs === fromNs) last.toNs = fromNs + span;
      else out.push({ tile, fromNs, toNs: fromNs + span });
      return "coarser";
    }
    const before = out.length;
    this.descend(level, lane, index, kDescentLevels, out);
    return out.length > before ? "finer" : "none";
  }

  private covered(level: number, lane: number, index: number, depth: number): boolean {
    if (depth === 0 || level === 0) return false;
    for (const child of [2 * index, 2 * index + 1]) {
      if (!this.has(level - 1, lane, child) && !this.covered(level - 1, lane, child, depth - 1)) return false;
    }
    return true;
  }

  private descend(level: number, lane: number, index: number, depth: number, out: TileSpan[]): void {
    if (depth === 0 || level === 0) return;
    const span = tileSpanNs(level - 1);
    for (const child of [2 * index, 2 * index + 1]) {
      const tile = this.get(level - 1, lane, child);
      if (tile) out.push({ tile, fromNs: child * span, toNs: (child + 1) * span });
      else this.descend(level - 1, lane, child, depth - 1, out);
    }
  }

  private drop(at: string): void {
    const tile = this.tiles.get(at);
    if (!tile) return;
    this.tiles.delete(at);
    this.usedBytes -= tile.memoryBytes;
    for (const id of tile.names) this.release(id);
  }

  private retain(id: number, text: string): void {
    const entry = this.pool.get(id);
    if (entry) entry.uses += 1;
    else {
      this.pool.set(id, { text, drawn: null, uses: 1 });
      this.usedBytes += nameBytes(text);
    }
  }

  private release(id: number): void {
    const entry = this.pool.get(id);
    if (!entry || --entry.uses > 0) return;
    this.pool.delete(id);
    this.usedBytes -= nameBytes(entry.text);
  }
}

function nameBytes(text: string): number {
  return kNameObjectBytes + 2 * text.length;
}

function key(level: number, lane: number, index: number): string {
  return `${level}/${lane}/${index}`;
}
