// Which ranks work together: a square for each rank, a line for each host, one color for each group of the chosen kind.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobLayout } from "../../data/job_answers";
import { useUrl } from "../../page/link";
import { cssColor, theme } from "../../page/theme";
import { useBoxWidth } from "../../parts/box_width";
import { Select } from "../../parts/fields";
import { Tip } from "../../parts/tip";
import { formatDuration, formatNumber } from "../../text/format";
import { scaledContext } from "./canvas";
import { formatRanks } from "./lanes";
import { kindsOf, type Placed, placeRanks } from "./topology";

const kColors = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];
const kMostPx = 26;
const kLeastPx = 5;
const kNamePx = 110;

export function TopologySection(props: { layout: JobLayout; onShow: (ranks: string) => void }): JSX.Element | null {
  const { layout } = props;
  const kinds = useMemo(() => kindsOf(layout), [layout]);
  const [wanted, setWanted] = useUrl("ranks.kind", "");
  const kind = kinds.find((each) => each.kind === wanted) ?? kinds[0];
  if (!kind) return null;
  return (
    <section class="card" aria-label="Groups">
      <div class="toolbar">
        <h2>Groups</h2>
        <Select
          label="Kind"
          value={kind.kind}
          options={kinds.map((each) => [each.kind, `${each.kind} (${formatNumber(each.groups.length)})`] as const)}
          onChange={setWanted}
        />
        <span class="muted">
          {formatDuration(kind.waitNs)} waiting and {formatDuration(kind.transferNs)} moving, of all ranks
        </span>
      </div>
      <TopologyMap layout={layout} groups={kind.groups} onShow={props.onShow} />
    </section>
  );
}

function TopologyMap(props: {
  layout: JobLayout;
  groups: JobLayout["groups"];
  onShow: (ranks: string) => void;
}): JSX.Element {
  const { layout, groups } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useBoxWidth(canvas);
  const placed = useMemo(() => placeRanks(layout, groups), [layout, groups]);
  const columns = Math.max(...placed.map((each) => each.column)) + 1;
  const lines = Math.max(...placed.map((each) => each.line)) + 1;
  const size = Math.max(kLeastPx, Math.min(kMostPx, Math.floor((width - kNamePx) / columns)));
  const height = lines * size;
  const [hovered, setHovered] = useState<{ rank: Placed; x: number; y: number } | null>(null);
  const shade = theme.value;

  useEffect(() => {
    draw(canvas.current!, placed, layout, { width, height, size, group: hovered?.rank.group ?? -1 });
  }, [placed, layout, width, height, size, hovered?.rank.group, shade]);

  const find = (event: MouseEvent) => {
    const line = Math.floor(event.offsetY / size);
    const column = Math.floor((event.offsetX - kNamePx) / size);
    return placed.find((each) => each.line === line && each.column === column);
  };
  const together = (rank: Placed) =>
    rank.group < 0 ? [rank.rank] : placed.filter((each) => each.group === rank.group).map((each) => each.rank);
  return (
    <div class="ranks-canvas-box topology-box">
      <canvas
        ref={canvas}
        role="img"
        aria-label={`${layout.ranks.length} ranks in ${groups.length} groups on ${lines} lines`}
        style={{ width: `${width}px`, height: `${height}px` }}
        onMouseMove={(event) => {
          const rank = find(event);
          setHovered(rank ? { rank, x: event.offsetX, y: event.offsetY } : null);
        }}
        onMouseLeave={() => setHovered(null)}
        onClick={(event) => {
          const rank = find(event);
          if (rank) props.onShow(formatRanks(together(rank).slice(0, 64)));
        }}
      />
      {hovered && (
        <Tip x={hovered.x} top={hovered.y + 14} width={width}>
          <strong>rank {hovered.rank.rank}</strong>
          <div>
            {hovered.rank.group < 0
              ? "in no group of this kind"
              : `together with ${formatRanks(together(hovered.rank).filter((each) => each !== hovered.rank.rank))}`}
          </div>
          <div class="muted">click: show them in the timeline</div>
        </Tip>
      )}
    </div>
  );
}

function draw(
  canvas: HTMLCanvasElement,
  placed: readonly Placed[],
  layout: JobLayout,
  box: { width: number; height: number; size: number; group: number },
): void {
  const ctx = scaledContext(canvas, box.width, box.height);
  const colors = kColors.map((name) => cssColor(name));
  const gap = box.size > 8 ? 2 : 1;
  for (const { rank, line, column, group } of placed) {
    const x = kNamePx + column * box.size;
    const y = line * box.size;
    ctx.globalAlpha = box.group < 0 || box.group === group ? 1 : 0.3;
    ctx.fillStyle = group < 0 ? cssColor("--raised") : colors[group % colors.length];
    ctx.fillRect(x, y, box.size - gap, box.size - gap);
    ctx.globalAlpha = 1;
    if (box.size < 22) continue;
    ctx.fillStyle = group < 0 ? cssColor("--muted") : cssColor("--bg");
    ctx.textAlign = "center";
    ctx.fillText(String(rank), x + (box.size - gap) / 2, y + box.size / 2, box.size - gap);
  }
  ctx.textAlign = "left";
  ctx.fillStyle = cssColor("--muted");
  if (box.size < 11) return;
  layout.hosts.forEach((name, line) => ctx.fillText(name, 0, line * box.size + box.size / 2, kNamePx - 8));
}
