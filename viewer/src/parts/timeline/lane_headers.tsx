// The names of lanes, groups and counters on the left, with their buttons.

import type { JSX } from "preact";
import type { CounterTrack } from "../../data/answers";
import { formatNumber } from "../../text/format";
import { formatCounter } from "./draw_overlay";
import type { Block } from "./layout";
import type { TimelineModel } from "./model";

// Only what is close to the visible part is in the document: traces may have thousands of lanes.
const kMarginPixels = 400;

export function LaneHeaders(props: {
  model: TimelineModel;
  blocks: readonly Block[];
  from?: number;
  to?: number;
}): JSX.Element {
  const { model, blocks, from = -Infinity, to = Infinity } = props;
  const near = blocks.filter(
    (block) => block.y + block.height >= from - kMarginPixels && block.y <= to + kMarginPixels,
  );
  return (
    <>
      {near.map((block) => (
        <div
          key={block.key}
          class={`lane-header ${block.type}`}
          style={{ top: `${block.y}px`, height: `${block.height}px` }}
        >
          <div class="lane-header-line">
            <Header model={model} block={block} />
          </div>
        </div>
      ))}
    </>
  );
}

function Header(props: { model: TimelineModel; block: Block }): JSX.Element {
  const { model, block } = props;
  if (block.type === "group") {
    return (
      <>
        <Collapse model={model} blockKey={block.key} collapsed={block.collapsed} name={block.name} />
        <span class="lane-name" title={block.name}>
          {block.name}
        </span>
        {block.collapsed && <span class="muted">{formatNumber(block.lanes)} lanes</span>}
      </>
    );
  }
  if (block.type === "lane") {
    const { lane } = block;
    return (
      <>
        <Collapse model={model} blockKey={block.key} collapsed={block.collapsed} name={lane.name} />
        <span class="lane-name" title={`${lane.group}: ${lane.name}\n${formatNumber(lane.slices)} slices`}>
          {lane.name}
        </span>
        <Buttons model={model} blockKey={block.key} pinned={block.pinned} name={lane.name} />
      </>
    );
  }
  const { track } = block;
  return (
    <>
      <span class="lane-name counter-name" title={`${track.group}: ${track.name}\n${counterRange(track)}`}>
        {track.name}
        <span class="muted">{counterRange(track)}</span>
      </span>
      <Buttons model={model} blockKey={block.key} pinned={block.pinned} name={track.name} />
    </>
  );
}

// A single sample is a reading, not a maximum.
function counterRange({ max, unit, samples }: CounterTrack): string {
  return samples === 1 ? `${formatCounter(max, unit)} (1 sample)` : `max ${formatCounter(max, unit)}`;
}

function Collapse(props: { model: TimelineModel; blockKey: string; collapsed: boolean; name: string }): JSX.Element {
  const { model, blockKey, collapsed, name } = props;
  return (
    <button
      class="icon-button"
      aria-expanded={!collapsed}
      aria-label={`${collapsed ? "Expand" : "Collapse"} ${name}`}
      onClick={() => model.shown.toggle("collapsed", blockKey)}
    >
      {collapsed ? "▸" : "▾"}
    </button>
  );
}

function Buttons(props: { model: TimelineModel; blockKey: string; pinned: boolean; name: string }): JSX.Element {
  const { model, blockKey, pinned, name } = props;
  return (
    <span class="lane-buttons">
      <button
        class="icon-button"
        aria-pressed={pinned}
        aria-label={`Pin ${name}`}
        title={pinned ? "Unpin" : "Pin to the top"}
        onClick={() => model.shown.toggle("pinned", blockKey)}
      >
        <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
          <path d="M4 1h4v4l2 2v1H6.5v3h-1V8H2V7l2-2z" fill={pinned ? "currentColor" : "none"} stroke="currentColor" />
        </svg>
      </button>
      <button
        class="icon-button"
        aria-label={`Hide ${name}`}
        title="Hide"
        onClick={() => model.shown.toggle("hidden", blockKey)}
      >
        ✕
      </button>
    </span>
  );
}
