// A flame graph on a canvas: hover, click to zoom, arrow keys to move between frames.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { cssColor, type Theme, theme } from "../../page/theme";
import { useBoxWidth } from "../box_width";
import { kLabelColors, sliceColor } from "../slice_colors";
import { Tip } from "../tip";
import { formatDuration, formatShare } from "../../text/format";
import { shortName } from "../../text/names";
import {
  childrenOf,
  type FlameLayout,
  type FlameView,
  type Frame,
  frameAt,
  frameKind,
  frameLabel,
  matches,
  parentOf,
  siblingOf,
  visibleBoxes,
  zoomView,
} from "./flame";
import "./flame.css";

const kRowPx = 19;
const kTextFromPx = 24;
const kCharPx = 6.3;

export interface FlameCanvasProps<F extends Frame> {
  layout: FlameLayout<F>;
  view: FlameView;
  totalNs: number;
  search: string;
  selected: F | null;
  onView: (view: FlameView) => void;
  onSelect: (frame: F | null) => void;
  color?: (frame: F, theme: Theme) => string; // instead of one by name
  describe?: (frame: F) => ComponentChildren; // in the tooltip, instead of its time
}

export function FlameCanvas<F extends Frame>(props: FlameCanvasProps<F>): JSX.Element {
  const { layout, view, selected } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useBoxWidth(canvas);
  const [hovered, setHovered] = useState<{ frame: F; x: number; y: number } | null>(null);
  const height = layout.rows.length * kRowPx + 2;
  const shade = theme.value;

  useEffect(() => {
    draw(canvas.current!, { ...props, width, height, shade, hovered: hovered?.frame ?? null });
  }, [layout, view, props.search, selected, hovered?.frame, width, shade]);

  // Not passive: Ctrl and wheel zoom the graph, not the page.
  useEffect(() => {
    const element = canvas.current!;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      props.onView(zoomView(layout, view, timeAt(event), event.deltaY > 0 ? 1.25 : 0.8));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  });

  const timeAt = (event: MouseEvent) => view.fromNs + (event.offsetX / width) * (view.toNs - view.fromNs);
  const frameUnder = (event: MouseEvent) => frameAt(layout, Math.floor(event.offsetY / kRowPx), timeAt(event));
  const zoomTo = (frame: F) => props.onView({ fromNs: frame.startNs, toNs: frame.startNs + frame.widthNs });

  const onKeyDown = (event: KeyboardEvent) => {
    const at = selected ?? layout.rows[0]?.[0];
    if (!at) return;
    const go: Record<string, () => F | null | undefined> = {
      ArrowUp: () => parentOf(layout, at),
      ArrowDown: () => (selected ? childrenOf(layout, at).sort((a, b) => b.widthNs - a.widthNs)[0] : at),
      ArrowLeft: () => siblingOf(layout, at, -1),
      ArrowRight: () => siblingOf(layout, at, 1),
    };
    if (event.key in go) {
      const next = go[event.key]();
      if (next) props.onSelect(next);
    } else if (event.key === "Enter") {
      zoomTo(at);
    } else if (event.key === "Escape") {
      props.onSelect(null);
      props.onView({ fromNs: layout.fromNs, toNs: layout.toNs });
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div class="flame-box">
      <canvas
        ref={canvas}
        class="flame"
        tabIndex={0}
        role="application"
        aria-label="Flame graph. Arrow keys move between frames, Enter zooms in, Escape zooms out."
        style={{ width: `${width}px`, height: `${height}px` }}
        onMouseMove={(event) => {
          const frame = frameUnder(event);
          setHovered(frame ? { frame, x: event.offsetX, y: event.offsetY } : null);
        }}
        onMouseLeave={() => setHovered(null)}
        onClick={(event) => {
          const frame = frameUnder(event);
          props.onSelect(frame);
          if (frame) zoomTo(frame);
        }}
        onKeyDown={onKeyDown}
      />
      {hovered && (
        <Tip x={hovered.x} top={hovered.y + 14} width={width}>
          <strong>{hovered.frame.name}</strong>
          <div>
            {props.describe?.(hovered.frame) ?? (
              <>
                {formatDuration(hovered.frame.widthNs)} ({formatShare(hovered.frame.widthNs / props.totalNs)}), self{" "}
                {formatDuration(hovered.frame.selfNs)}
              </>
            )}
          </div>
        </Tip>
      )}
    </div>
  );
}

interface Drawn<F extends Frame> extends FlameCanvasProps<F> {
  width: number;
  height: number;
  shade: Theme;
  hovered: F | null;
}

function draw<F extends Frame>(canvas: HTMLCanvasElement, scene: Drawn<F>): void {
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(scene.width * scale);
  canvas.height = Math.round(scene.height * scale);
  const ctx = canvas.getContext("2d")!;
  ctx.scale(scale, scale);
  ctx.font = "11.5px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  const colors = {
    text: cssColor("--text"),
    accent: cssColor("--accent"),
    faint: cssColor("--raised"),
    muted: cssColor("--muted"),
  };
  const searching = scene.search !== "";
  const fills = new Map<string, string>();
  const fillOf = (frame: F) => scene.color?.(frame, scene.shade) ?? fillOfName(frame.name);
  const fillOfName = (name: string) => {
    let fill = fills.get(name);
    if (!fill) fills.set(name, (fill = `rgb(${sliceColor(frameKind(name), name, scene.shade).join(" ")})`));
    return fill;
  };
  scene.layout.rows.forEach((row, depth) => {
    const top = depth * kRowPx;
    for (const { frame, left, width } of visibleBoxes(row, scene.view, scene.width)) {
      const hit = searching && matches(frame.name, scene.search);
      ctx.fillStyle = searching && !hit ? colors.faint : fillOf(frame);
      ctx.fillRect(left, top, Math.max(width - 0.5, 0.5), kRowPx - 1);
      if (frame === scene.selected || frame === scene.hovered || hit) {
        ctx.strokeStyle = hit ? colors.accent : colors.text;
        ctx.lineWidth = frame === scene.selected ? 2 : 1;
        ctx.strokeRect(left + 0.5, top + 0.5, Math.max(width - 1.5, 0.5), kRowPx - 2);
      }
      if (width < kTextFromPx) continue;
      ctx.fillStyle = searching && !hit ? colors.muted : kLabelColors[scene.shade];
      const room = Math.floor((width - 8) / kCharPx);
      ctx.fillText(frameLabel(shortName(frame.name), room), left + 4, top + kRowPx / 2);
    }
  });
}
