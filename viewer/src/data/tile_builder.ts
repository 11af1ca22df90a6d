// Writes tiles as the server does, for tests.

export interface BuiltSlice {
  startNs: number;
  durationNs: number;
  ref?: number;
  name: number;
  row?: number;
  kind?: number;
}

export interface BuiltRun extends BuiltSlice {
  busy: number;
  count: number;
}

export interface BuiltTile {
  lane: number;
  index: number;
  slices?: BuiltSlice[];
  runs?: BuiltRun[];
}

export function buildTiles(level: number, tiles: BuiltTile[], names: Record<number, string>): ArrayBuffer {
  const bytes: number[] = [];
  const put = (size: number, write: (view: DataView) => void) => {
    const view = new DataView(new ArrayBuffer(size));
    write(view);
    for (let i = 0; i < size; ++i) bytes.push(view.getUint8(i));
  };
  const u32 = (value: number) => put(4, (view) => view.setUint32(0, value, true));
  const f64 = (value: number) => put(8, (view) => view.setFloat64(0, value, true));
  const f32 = (value: number) => put(4, (view) => view.setFloat32(0, value, true));
  const u16 = (value: number) => put(2, (view) => view.setUint16(0, value, true));
  const u8 = (value: number) => bytes.push(value);
  const pad = (to: number) => {
    while (bytes.length % to !== 0) bytes.push(0);
  };
  const column = <T>(rows: T[], write: (value: number) => void, pick: (row: T) => number) => {
    for (const row of rows) write(pick(row));
    pad(8);
  };

  const nameList = Object.entries(names);
  for (const value of [0x31544c46, level, tiles.length, nameList.length]) u32(value);
  for (const { lane, index, slices = [], runs = [] } of tiles) {
    for (const value of [lane, slices.length, runs.length, 0]) u32(value);
    f64(index);
    column(slices, f64, (s) => s.startNs);
    column(slices, f64, (s) => s.durationNs);
    column(slices, u32, (s) => s.ref ?? 0);
    column(slices, u32, (s) => s.name);
    column(slices, u16, (s) => s.row ?? 0);
    column(slices, u8, (s) => s.kind ?? 0);
    column(runs, f64, (r) => r.startNs);
    column(runs, f64, (r) => r.durationNs);
    column(runs, f32, (r) => r.busy);
    column(runs, u32, (r) => r.count);
    column(runs, u32, (r) => r.name);
    column(runs, u16, (r) => r.row ?? 0);
    column(runs, u8, (r) => r.kind ?? 0);
  }
  for (const [id, name] of nameList) {
    const text = new TextEncoder().encode(name);
    u32(Number(id));
    u32(text.length);
    bytes.push(...text);
    pad(4);
  }
  return new Uint8Array(bytes).buffer;
}
