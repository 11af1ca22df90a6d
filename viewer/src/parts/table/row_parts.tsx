// Headers that sort, cells that link to the timeline, and the twisties of a tree.

import type { JSX } from "preact";
import type { Cell, Column } from "../../data/answers";
import { openInTimeline, type TimelinePlace } from "../../page/navigation";
import { cellText } from "../../text/cells";
import { formatByKind } from "../../text/format";
import { ShareBar } from "../share_bar";
import type { PlaceOf } from "./places";
import type { Sort } from "./rows";

export const kTwistyPx = 18;
export const kIndentPx = 14;

export interface TreeRow {
  level: number; // from 0
  expanded: boolean | null; // null: no children
}

export function HeaderCell(props: {
  column: Column;
  sort: Sort | null | undefined;
  onSort: ((column: Column) => void) | undefined;
}): JSX.Element {
  const { column, sort, onSort } = props;
  const sorted = sort?.column === column.name ? (sort.descending ? "descending" : "ascending") : undefined;
  return (
    <th scope="col" class={column.kind === "text" ? "text" : "number"} aria-sort={sorted ?? (onSort ? "none" : undefined)}>
      {onSort ? (
        <button class="sort" onClick={() => onSort(column)} title={headerTitle(column)}>
          {column.label}
          {sorted && (
            <span class="sort-mark" aria-hidden="true">
              {sorted === "descending" ? "▼" : "▲"}
            </span>
          )}
        </button>
      ) : (
        column.label
      )}
    </th>
  );
}

function headerTitle(column: Column): string {
  return `${column.help ? `${column.help}\n` : ""}Sort by ${column.label} (${column.name})`;
}

export function LinkCell(props: {
  cell: Cell;
  column: Column;
  place: PlaceOf;
  row: Cell[];
  onPlace?: (place: TimelinePlace) => void;
}): JSX.Element {
  const place = props.place(props.row);
  if (!place) return <PlainCell cell={props.cell} column={props.column} />;
  return (
    <button
      class="link cell-link"
      tabIndex={-1} // the focus stays on the grid
      title={`${formatByKind(props.column.kind, props.cell)}\nShow in the timeline`}
      onClick={() => (props.onPlace ?? openInTimeline)(place)}
    >
      {cellText(props.column, props.cell)}
    </button>
  );
}

export function PlainCell(props: { cell: Cell; column: Column }): JSX.Element {
  const { cell, column } = props;
  if (column.kind === "percent" && typeof cell === "number" && !column.signed) {
    return (
      <span class="share-cell">
        <ShareBar percent={cell} />
        <span class="share-text">{cellText(column, cell)}</span>
      </span>
    );
  }
  const long = typeof cell === "string" && cell.length > 8;
  return (
    <span class="cell" title={long ? cell : undefined}>
      {cellText(column, cell)}
    </span>
  );
}

export function Twisty(props: { state: TreeRow; onToggle: (expand: boolean) => void }): JSX.Element {
  const { level, expanded } = props.state;
  const style = { marginLeft: `${level * kIndentPx}px` };
  if (expanded === null) return <span class="twisty" style={style} aria-hidden="true" />;
  return (
    <button
      class="twisty"
      style={style}
      tabIndex={-1}
      aria-label={expanded ? "Collapse" : "Expand"}
      onClick={() => props.onToggle(!expanded)}
    >
      {expanded ? "▾" : "▸"}
    </button>
  );
}
