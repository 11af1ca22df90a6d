// The lanes: a scrolling box with a fixed canvas, names beside it, and a tooltip.

import { effect, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { refText } from "../../data/tiles";
import { theme } from "../../page/theme";
import { kindLabel } from "../slice_colors";
import { formatDuration, formatNumber, formatShare } from "../../text/format";
import { dependsOn } from "./depends_on";
import { counterAt, formatCounter } from "./draw_overlay";
import { type Hit, hitTest } from "./draw_slices";
import { TimelineInput } from "./input";
import { LaneHeaders } from "./lane_headers";
import { type Block, blockAt } from "./layout";
import { minimapTiles } from "./minimap";
import { kRulerHeight, type TimelineModel } from "./model";
import { Painter } from "./painter";
import type { PointerPlace } from "./pointers";
import { fitView, xToTime } from "./view";
import "./lanes.css";

const kSlackPixels = 3;

interface Tip {
  x: number;
  y: number;
  lines: [string, string][];
  title: string;
}

interface UnderPointer {
  block: Block;
  hit: Hit | null;
  atNs: number;
}

export function LanesView(props: { model: TimelineModel; focusSearch: () => void }): JSX.Element {
  const { model, focusSearch } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const names = useRef<HTMLDivElement>(null);
  const tip = useSignal<Tip | null>(null);
  const cursor = useSignal<"pointer" | "">("");

  useEffect(() => {
    const painter = new Painter(canvas.current!, model);
    let hover: UnderPointer | null = null;
    let clicked: UnderPointer | null = null;
    let scheduled = 0;

    const draw = (now: number) => {
      scheduled = 0;
      const more = [model.stepAnimation(now), input.frame(now)].some(Boolean);
      const mark = hover?.block.type === "lane" && hover.hit ? { ...hover.hit, lane: hover.block.lane.id } : null;
      painter.draw(theme.value, mark);
      model.wantTiles(painter.shownLanes, minimapTiles(model));
      model.counters.want(model.view, model.width, painter.shownTracks);
      if (more) model.requestDraw();
    };
    model.requestDraw = () => {
      if (scheduled === 0) scheduled = requestAnimationFrame(draw);
    };

    const under = (place: PointerPlace): UnderPointer | null => {
      const { pinned, pinnedHeight, scrolled } = model.shown.layout.value;
      const y = place.y - kRulerHeight;
      if (y < 0) return null;
      const inPinned = y < pinnedHeight;
      const at = inPinned ? y : y - pinnedHeight + model.scrollY.value;
      const block = blockAt(inPinned ? pinned : scrolled, at);
      if (!block) return null;
      const atNs = xToTime(model.view, model.width, place.x);
      if (block.type !== "lane" || !painter.frame) return { block, hit: null, atNs };
      const row = Math.min(Math.floor((at - block.y) / block.rowHeight), Math.max(0, block.lane.rows - 1));
      const slackNs = (kSlackPixels * (model.view.toNs - model.view.fromNs)) / model.width;
      return { block, hit: hitTest(model.store, painter.frame, block.lane, row, atNs, slackNs), atNs };
    };

    const input = new TimelineInput(canvas.current!, model, {
      hover(place) {
        const next = place && under(place);
        const changed =
          next?.hit?.startNs !== hover?.hit?.startNs ||
          next?.hit?.row !== hover?.hit?.row ||
          next?.block !== hover?.block;
        hover = next;
        tip.value = next && place ? tipFor(model, next, place) : null;
        cursor.value = next?.hit ? "pointer" : "";
        if (changed) model.requestDraw();
      },
      click(place) {
        const at = (clicked = under(place));
        if (!at?.hit || at.block.type !== "lane") {
          model.select(null);
        } else if (at.hit.type === "slice") {
          const { hit } = at;
          model.select({
            ref: refText(hit.ref),
            lane: at.block.lane.id,
            row: hit.row,
            name: hit.name,
            startNs: hit.startNs,
            durationNs: hit.durationNs,
          });
        } else {
          // Too short to be told apart: zoom in.
          model.setView(fitView(at.hit.startNs, at.hit.durationNs, model.lanes.endNs, 2), { animate: true });
        }
      },
      // Fits what the first click hit: the panel that it opened may have moved things since.
      doubleClick() {
        if (clicked?.hit)
          model.setView(fitView(clicked.hit.startNs, clicked.hit.durationNs, model.lanes.endNs), { animate: true });
      },
      focusSearch,
      scrollBy(pixels) {
        box.current!.scrollTop += pixels;
      },
    });

    model.scrollBox = (y) => {
      // In the next frame: the box may not have its new height yet.
      requestAnimationFrame(() => {
        if (box.current) box.current.scrollTop = y;
      });
    };
    model.scrollBox(model.scrollY.value);
    const resize = new ResizeObserver(() => {
      model.resize(Math.max(50, box.current!.clientWidth - names.current!.offsetWidth), Math.max(50, box.current!.clientHeight));
      canvas.current!.style.width = `${model.width}px`;
      canvas.current!.style.height = `${model.height}px`;
    });
    resize.observe(box.current!);
    const stopTheme = effect(() => {
      dependsOn(theme);
      model.requestDraw();
    });
    return () => {
      stopTheme();
      resize.disconnect();
      input.dispose();
      model.requestDraw = () => {};
      model.scrollBox = () => {};
      cancelAnimationFrame(scheduled);
    };
  }, [model]);

  const layout = model.shown.layout.value;
  const top = kRulerHeight + layout.pinnedHeight;
  // In steps, so that headers do not render again with every pixel.
  const scroll = Math.floor(model.scrollY.value / 200) * 200;
  return (
    <div
      class="lanes"
      ref={box}
      onScroll={(event) => {
        model.scrollY.value = event.currentTarget.scrollTop;
        model.requestDraw();
      }}
    >
      <div class="lanes-content" style={{ height: `${top + layout.height + 40}px`, "--lanes-top": `${top}px` }}>
        <div class="lanes-fixed">
          <canvas
            ref={canvas}
            class="lanes-canvas"
            style={{ cursor: cursor.value }}
            tabIndex={0}
            role="application"
            aria-label="Timeline. W and S zoom, A and D pan, arrows move between slices, slash searches, question mark lists all shortcuts."
          />
          <div class="lanes-corner" style={{ height: `${top}px` }}>
            <div class="lane-headers" style={{ top: `${kRulerHeight}px` }}>
              <LaneHeaders model={model} blocks={layout.pinned} />
            </div>
          </div>
        </div>
        <div class="lane-headers" ref={names} style={{ top: `${top}px` }}>
          <LaneHeaders model={model} blocks={layout.scrolled} from={scroll} to={scroll + 1200} />
        </div>
      </div>
      {tip.value && <Tooltip tip={tip.value} />}
    </div>
  );
}

function Tooltip(props: { tip: Tip }): JSX.Element {
  const { x, y, title, lines } = props.tip;
  // Toward the middle of the window, where there is room.
  const { innerWidth, innerHeight } = window;
  const across = x > innerWidth / 2 ? { right: `${innerWidth - x + 14}px` } : { left: `${x + 14}px` };
  const down = y > innerHeight - 140 ? { bottom: `${innerHeight - y + 10}px` } : { top: `${y + 16}px` };
  return (
    <div class="timeline-tip" role="presentation" style={{ ...across, ...down }}>
      <strong>{title}</strong>
      {lines.map(([label, value]) => (
        <div key={label}>
          <span class="muted">{label}</span> {value}
        </div>
      ))}
    </div>
  );
}

function tipFor(model: TimelineModel, { block, hit, atNs }: UnderPointer, place: PointerPlace): Tip | null {
  const at = { x: place.clientX, y: place.clientY };
  if (block.type === "counter") {
    const value = counterAt(model, block.track.id, atNs);
    if (!value) return null;
    const { unit } = block.track;
    const text =
      value.min === value.max
        ? formatCounter(value.max, unit)
        : `${formatCounter(value.min, unit)} to ${formatCounter(value.max, unit)}`;
    return { ...at, title: block.track.name, lines: [["", text]] };
  }
  if (!hit) return null;
  if (hit.type === "slice") {
    return {
      ...at,
      title: hit.name,
      lines: [
        ["", `${formatDuration(hit.durationNs)}, ${kindLabel(hit.kind)}`],
        ["at", formatDuration(hit.startNs)],
        ...(hit.cut ? [["", "starts before or ends after the recording"] as [string, string]] : []),
      ],
    };
  }
  const lines: [string, string][] = [
    ["", `busy ${formatShare(hit.busy)} of ${formatDuration(hit.durationNs)}`],
    ["longest", hit.name],
  ];
  return { ...at, title: `${formatNumber(hit.count)} short ${hit.count === 1 ? "slice" : "slices"}`, lines };
}
