// Reads the binary tiles of the protocol (docs/viewer-protocol.md, "Tiles").
//
// Each tile is copied out of its answer, so that evicting it frees its memory even while other tiles of the same answer stay.
// A damaged answer throws, and nothing of it is kept: counts are checked against the bytes that are there before anything is
// allocated for them. Elements are not checked one by one; this is the page's hot path.

import { Mismatch } from "./decode";

const kTileBins = 512;
const kMagic = 0x31544c46;
const kAnswerHeaderBytes = 16;
const kTileHeaderBytes = 24;
const kDeviceBit = 0x80000000;
const kCutBit = 0x40;
// Memory of a tile besides its columns: array objects, its own object, its map entry. Measured in Chromium 156.
const kTileObjectBytes = 1100;
const kEmptyTileBytes = 150;

export interface Tile {
  level: number;
  lane: number;
  index: number;
  sliceCount: number;
  startNs: Float64Array;
  durationNs: Float64Array;
  ref: Uint32Array;
  name: Uint32Array;
  row: Uint16Array;
  kind: Uint8Array;
  runCount: number;
  runStartNs: Float64Array;
  runDurationNs: Float64Array;
  runBusy: Float32Array;
  runSlices: Uint32Array;
  runName: Uint32Array;
  runRow: Uint16Array;
  runKind: Uint8Array;
  // The distinct names that the tile uses, for reference counting.
  names: Uint32Array;
  bytes: number; // in the answer
  memoryBytes: number; // in the page
}

export interface TileAnswer {
  level: number;
  tiles: Tile[];
  names: Map<number, string>;
}

export function tileSpanNs(level: number): number {
  return kTileBins * 2 ** level;
}

// The text form of a ref in a tile: `h12` or `d7`.
export function refText(ref: number): string {
  return ref >= kDeviceBit ? `d${ref - kDeviceBit}` : `h${ref}`;
}

// The kind byte of a tile holds a slice's kind, and whether it starts before or ends after the recording.
export function kindOf(byte: number): number {
  return byte & ~kCutBit;
}
export function isCut(byte: number): boolean {
  return (byte & kCutBit) !== 0;
}

// `wantedLevel` is the level that was asked for, where there is one.
export function parseTiles(buffer: ArrayBuffer, wantedLevel?: number): TileAnswer {
  const view = new DataView(buffer);
  need(buffer, kAnswerHeaderBytes);
  if (view.getUint32(0, true) !== kMagic) throw new Mismatch('"FLT1"', new TextDecoder().decode(buffer.slice(0, 4)));
  const level = view.getUint32(4, true);
  if (level !== (wantedLevel ?? level)) throw new Mismatch(`level ${wantedLevel}`, level, "level");
  const tileCount = view.getUint32(8, true);
  const nameCount = view.getUint32(12, true);
  let at = kAnswerHeaderBytes;
  const tiles: Tile[] = [];
  for (let i = 0; i < tileCount; ++i) {
    const tile = parseTile(buffer, view, at, level);
    tiles.push(tile);
    at += tile.bytes;
  }
  return { level, tiles, names: parseNames(buffer, view, at, nameCount) };
}

// Without bit operations: they are limited to 32 bits, and a damaged count may be larger.
function padded(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function parseTile(buffer: ArrayBuffer, view: DataView, at: number, level: number): Tile {
  need(buffer, at + kTileHeaderBytes);
  const slices = view.getUint32(at + 4, true);
  const runs = view.getUint32(at + 8, true);
  const sliceBytes = padded(8 * slices) * 2 + padded(4 * slices) * 2 + padded(2 * slices) + padded(slices);
  const runBytes = padded(8 * runs) * 2 + padded(4 * runs) * 3 + padded(2 * runs) + padded(runs);
  const bytes = kTileHeaderBytes + sliceBytes + runBytes;
  need(buffer, at + bytes);
  if (slices + runs === 0) return emptyTile(level, view.getUint32(at, true), view.getFloat64(at + 16, true));
  const own = buffer.slice(at, at + bytes);
  let next = kTileHeaderBytes;
  const take = (size: number, count: number) => {
    const begin = next;
    next += padded(size * count);
    return begin;
  };
  const tile: Tile = {
    level,
    lane: view.getUint32(at, true),
    index: view.getFloat64(at + 16, true),
    sliceCount: slices,
    startNs: new Float64Array(own, take(8, slices), slices),
    durationNs: new Float64Array(own, take(8, slices), slices),
    ref: new Uint32Array(own, take(4, slices), slices),
    name: new Uint32Array(own, take(4, slices), slices),
    row: new Uint16Array(own, take(2, slices), slices),
    kind: new Uint8Array(own, take(1, slices), slices),
    runCount: runs,
    runStartNs: new Float64Array(own, take(8, runs), runs),
    runDurationNs: new Float64Array(own, take(8, runs), runs),
    runBusy: new Float32Array(own, take(4, runs), runs),
    runSlices: new Uint32Array(own, take(4, runs), runs),
    runName: new Uint32Array(own, take(4, runs), runs),
    runRow: new Uint16Array(own, take(2, runs), runs),
    runKind: new Uint8Array(own, take(1, runs), runs),
    names: new Uint32Array(0),
    bytes,
    memoryBytes: 0,
  };
  tile.names = Uint32Array.from(new Set([...tile.name, ...tile.runName]));
  tile.memoryBytes = kTileObjectBytes + bytes + tile.names.byteLength;
  return tile;
}

function parseNames(buffer: ArrayBuffer, view: DataView, begin: number, count: number): Map<number, string> {
  const text = new TextDecoder();
  const names = new Map<number, string>();
  let at = begin;
  for (let i = 0; i < count; ++i) {
    need(buffer, at + 8);
    const id = view.getUint32(at, true);
    const bytes = view.getUint32(at + 4, true);
    need(buffer, at + 8 + bytes);
    names.set(id, text.decode(new Uint8Array(buffer, at + 8, bytes)));
    at += 8 + Math.ceil(bytes / 4) * 4;
  }
  return names;
}

function need(buffer: ArrayBuffer, bytes: number): void {
  if (bytes > buffer.byteLength) throw new Mismatch(`at least ${bytes} bytes`, buffer);
}

const kNoF64 = new Float64Array(0);
const kNoF32 = new Float32Array(0);
const kNoU32 = new Uint32Array(0);
const kNoU16 = new Uint16Array(0);
const kNoU8 = new Uint8Array(0);

// Most tiles of a zoomed-in view are empty: they share their columns.
export function emptyTile(level: number, lane: number, index: number): Tile {
  return {
    level,
    lane,
    index,
    sliceCount: 0,
    startNs: kNoF64,
    durationNs: kNoF64,
    ref: kNoU32,
    name: kNoU32,
    row: kNoU16,
    kind: kNoU8,
    runCount: 0,
    runStartNs: kNoF64,
    runDurationNs: kNoF64,
    runBusy: kNoF32,
    runSlices: kNoU32,
    runName: kNoU32,
    runRow: kNoU16,
    runKind: kNoU8,
    names: kNoU32,
    bytes: kTileHeaderBytes,
    memoryBytes: kEmptyTileBytes,
  };
}
