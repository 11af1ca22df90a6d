// A real <table> with only the visible rows in the document: ten thousand rows scroll smoothly.
//
// All rows have the same height and columns have fixed widths, so nothing jumps. Where rows link to the timeline the table is
// a grid: it keeps the focus itself (rows come and go), arrow keys, Page Up/Down, Home and End move the active row, and Enter
// follows its link. Assistive technology gets the true number of rows from aria-rowcount.

import type { JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Cell, Column } from "../../data/answers";
import { openInTimeline, type TimelinePlace } from "../../page/navigation";
import type { PlaceOf } from "./places";
import { HeaderCell, kIndentPx, kTwistyPx, LinkCell, PlainCell, type TreeRow, Twisty } from "./row_parts";
import type { Sort } from "./rows";
import { columnWidths, pageMeasure, stretchColumn, visibleRows } from "./widths";
import "./table.css";

const kRowPx = 26;
const kHeaderPx = 30;
const kMeasuredRows = 2000;
const kWidePx = 1000; // beyond this, column widths no longer depend on the available width
const kSpread = 1.6; // how far a narrow table spreads in a wide window

export interface VirtualTableProps {
  label: string;
  columns: readonly Column[];
  // The index of each column's cell in a row.
  positions: readonly number[];
  rows: readonly Cell[][];
  sort?: Sort | null;
  onSort?: (column: Column) => void;
  place?: PlaceOf | null;
  onPlace?: (place: TimelinePlace) => void; // instead of opening it in the timeline
  // The column that carries the link; the first one by default.
  linkColumn?: string;
  tree?: (row: Cell[]) => TreeRow;
  onToggle?: (row: Cell[], expand: boolean) => void;
  // CSS; a table with few rows is smaller.
  maxHeight?: string;
}

export function VirtualTable(props: VirtualTableProps): JSX.Element {
  const { columns, positions, rows, place, tree } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [room, setRoom] = useState(0);
  const [active, showActive] = useState(0);
  const activeRow = useRef(0); // key presses can come faster than renders
  const setActive = (row: number) => {
    activeRow.current = row;
    showActive(row);
  };
  const id = useId();
  const isGrid = Boolean(place || tree);

  const link = Math.max(0, columns.findIndex((column) => column.name === props.linkColumn));
  const widths = useMemo(() => {
    const cells = rows.slice(0, kMeasuredRows).map((row) => positions.map((at) => row[at]));
    const found = columnWidths(columns, cells, pageMeasure(), room || Infinity);
    const deepest = tree ? Math.max(0, ...rows.slice(0, kMeasuredRows).map((row) => tree(row).level)) : 0;
    if (tree) found[link] += kTwistyPx + deepest * kIndentPx;
    return found;
  }, [columns, rows, Math.min(room, kWidePx)]);
  const stretch = isGrid && columns[link]?.kind === "text" ? link : stretchColumn(columns, widths);
  const total = widths.reduce((sum, width) => sum + width, 0);
  // A table wider than its box keeps the first column in view.
  const isPinned = link === 0 && isGrid && room > 0 && total > room && widths[0] < room / 2;

  useLayoutEffect(() => {
    const element = box.current!;
    const read = () => {
      setView({ top: element.scrollTop, height: element.clientHeight });
      setRoom(element.parentElement!.clientWidth);
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    observer.observe(element.parentElement!);
    return () => observer.disconnect();
  }, []);
  // New rows start at the top.
  useEffect(() => {
    if (!tree) box.current!.scrollTop = 0;
    setActive(tree ? Math.min(activeRow.current, Math.max(0, rows.length - 1)) : 0);
  }, [rows]);

  const goTo = (row: number) => {
    const to = Math.max(0, Math.min(rows.length - 1, row));
    const element = box.current!;
    const page = element.clientHeight - kHeaderPx;
    if (to * kRowPx < element.scrollTop) element.scrollTop = to * kRowPx;
    else if ((to + 1) * kRowPx > element.scrollTop + page) element.scrollTop = (to + 1) * kRowPx - page;
    setActive(to);
    setView({ top: element.scrollTop, height: element.clientHeight });
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || !isGrid || rows.length === 0) return;
    const at = activeRow.current;
    const page = Math.max(1, Math.floor((view.height - kHeaderPx) / kRowPx) - 1);
    const moves: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: rows.length - 1,
    };
    const state = tree?.(rows[at]);
    if (state && state.expanded !== null && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      props.onToggle?.(rows[at], event.key === "ArrowRight");
    } else if (event.key in moves) {
      goTo(moves[event.key]);
    } else if (event.key === "Enter") {
      const target = place?.(rows[at]);
      if (target) (props.onPlace ?? openInTimeline)(target);
    } else {
      return;
    }
    event.preventDefault();
  };

  const { first, end } = visibleRows(rows.length, kRowPx, view.top, view.height);
  return (
    <div
      class="table-box"
      ref={box}
      style={{ maxHeight: props.maxHeight ?? "70vh", maxWidth: room > total * kSpread ? `${total * kSpread}px` : "" }}
      tabIndex={isGrid ? undefined : 0}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <table
        class={`table${isPinned ? " pinned" : ""}`}
        role={tree ? "treegrid" : place ? "grid" : undefined}
        tabIndex={isGrid ? 0 : undefined}
        aria-activedescendant={isGrid && active >= first && active < end ? `${id}-${active}` : undefined}
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
        style={{ minWidth: `${total}px` }}
        onKeyDown={onKeyDown}
      >
        <colgroup>
          {widths.map((width, i) => (
            <col key={columns[i].name} style={i === stretch ? {} : { width: `${width}px` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.name} column={column} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {first > 0 && <Spacer px={first * kRowPx} span={columns.length} />}
          {rows.slice(first, end).map((row, i) => {
            const index = first + i;
            const state = tree?.(row);
            return (
              <tr
                key={i} // by position: scrolling changes text, not elements
                id={`${id}-${index}`}
                class={index === active && isGrid ? "active" : ""}
                data-row={index}
                aria-rowindex={index + 2}
                aria-level={state ? state.level + 1 : undefined}
                aria-expanded={state && state.expanded !== null ? state.expanded : undefined}
                onMouseDown={() => setActive(index)}
              >
                {columns.map((column, c) => {
                  const cell = row[positions[c]];
                  const isLink = c === link;
                  return (
                    <td key={column.name} class={column.kind === "text" ? "text" : "number"}>
                      {isLink && state && <Twisty state={state} onToggle={(expand) => props.onToggle?.(row, expand)} />}
                      {isLink && place ? (
                        <LinkCell cell={cell} column={column} place={place} row={row} onPlace={props.onPlace} />
                      ) : (
                        <PlainCell cell={cell} column={column} />
                      )}
                    </td>
                  );
                })}
              </tr>
            );
          })}
          {end < rows.length && <Spacer px={(rows.length - end) * kRowPx} span={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

function Spacer(props: { px: number; span: number }): JSX.Element {
  return (
    <tr aria-hidden="true" class="spacer">
      <td colSpan={props.span} style={{ height: `${props.px}px` }} />
    </tr>
  );
}
