// The fragmentation map: every segment of the allocator, used blocks in the color of their category, free ones empty.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { MemorySegments } from "../../data/answers";
import { cssColor, theme } from "../../page/theme";
import { useBoxWidth } from "../../parts/box_width";
import { categoryOf, categoryVariable } from "../../parts/memory/curve";
import { Notes } from "../../parts/notes";
import { Tip } from "../../parts/tip";
import { formatBytes, formatNumber, formatShare } from "../../text/format";
import { fragmentation, packSegments, type PlacedSegment, type Segment } from "./segments";

const kLinePx = 18;

// `categories` are those of the chart above.
export function SegmentMap(props: { answer: MemorySegments; categories: readonly string[] }): JSX.Element {
  const { segments, notes } = props.answer;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [tip, setTip] = useState<{ text: string; x: number; y: number } | null>(null);
  const { placed, lines } = useMemo(() => packSegments(segments), [segments]);
  const sums = useMemo(() => fragmentation(segments), [segments]);
  const shade = theme.value;

  const width = useBoxWidth(canvas, [lines > 0]);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, { placed, categories: props.categories, width, height: lines * kLinePx });
  }, [placed, props.categories, width, shade]);

  if (segments.length === 0) return <Notes notes={notes.length > 0 ? notes : ["This trace has no segments."]} />;
  return (
    <div>
      <p>
        {formatNumber(segments.length)} {segments.length === 1 ? "segment" : "segments"}, {formatBytes(sums.totalBytes)};{" "}
        {formatBytes(sums.freeBytes)} ({formatShare(sums.freeBytes / sums.totalBytes)}) free, largest free block{" "}
        {formatBytes(sums.largestFreeBytes)}
        {sums.freeSegments > 0 && `; ${formatNumber(sums.freeSegments)} completely free`}.
      </p>
      <div class="segment-box">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`Fragmentation map of ${segments.length} segments, ${formatShare(sums.freeBytes / sums.totalBytes)} free`}
          style={{ width: `${width}px`, height: `${lines * kLinePx}px` }}
          onMouseMove={(event) => {
            const text = describe(placed, event.offsetX / width, Math.floor(event.offsetY / kLinePx));
            setTip(text ? { text, x: event.offsetX, y: event.offsetY } : null);
          }}
          onMouseLeave={() => setTip(null)}
        />
        {tip && (
          <Tip x={tip.x} top={tip.y + 14} width={width}>
            {tip.text}
          </Tip>
        )}
      </div>
      <Notes notes={notes} />
    </div>
  );
}

function describe(placed: readonly PlacedSegment[], x: number, line: number): string | null {
  const found = placed.find((each) => each.line === line && each.left <= x && x < each.left + each.width);
  if (!found) return null;
  const offset = ((x - found.left) / found.width) * found.segment.bytes;
  const block = blockAt(found.segment, offset);
  const segment = `segment of ${formatBytes(found.segment.bytes)}`;
  if (!block) return segment;
  const owner = block.owner ? `, ${block.owner}` : "";
  return `${formatBytes(block.bytes)} ${block.state}${owner}; ${segment}`;
}

function blockAt(segment: Segment, offset: number) {
  return segment.blocks.find((block) => block.offset <= offset && offset < block.offset + block.bytes);
}

interface Scene {
  placed: readonly PlacedSegment[];
  categories: readonly string[];
  width: number;
  height: number;
}

function draw(canvas: HTMLCanvasElement, scene: Scene): void {
  const { width } = scene;
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(scene.height * scale);
  const ctx = canvas.getContext("2d")!;
  ctx.scale(scale, scale);
  const colors = scene.categories.map((name) => cssColor(categoryVariable(name)));
  const other = cssColor("--c8");
  const free = cssColor("--raised");
  const border = cssColor("--muted");
  for (const { segment, line, left, width: share } of scene.placed) {
    const x = left * width;
    const w = Math.max(1, share * width);
    const y = line * kLinePx + 1;
    ctx.fillStyle = free;
    ctx.fillRect(x, y, w, kLinePx - 4);
    for (const block of segment.blocks) {
      if (block.state !== "allocated") continue;
      ctx.fillStyle = colors[categoryOf(block.owner, scene.categories)] ?? other;
      const blockWidth = (block.bytes / segment.bytes) * w;
      // A thin gap between neighbors of the same color.
      ctx.fillRect(x + (block.offset / segment.bytes) * w, y, Math.max(0.5, blockWidth - 0.7), kLinePx - 4);
    }
    ctx.strokeStyle = border;
    ctx.lineWidth = 0.5;
    ctx.strokeRect(x, y, w, kLinePx - 4);
  }
}
