// A table of a described report: sort, filter, choose columns, copy as CSV, follow a row to the timeline. Sort order, filter and
// columns are kept in the link, below `id`.

import type { ComponentChildren, JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { OfSteps, Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import type { TimelinePlace } from "../../page/navigation";
import { formatNumber } from "../../text/format";
import { CopyButton } from "../clipboard";
import { Notes } from "../notes";
import { toCsv } from "./csv";
import { kNames, type PlaceOf, placesInSteps, placesOf } from "./places";
import { emptyColumns, filterRows, formatSort, nextSort, parseSort, sortRows } from "./rows";
import { VirtualTable } from "./virtual_table";

const kMinRowsForFilter = 8;
const kMinColumnsForChooser = 8;

export interface DescribedTableProps {
  id: string; // prefix of its keys in the link: `kernels`, `more.idle.gaps`
  table: Table;
  defaultSort?: string; // `-total_ns`
  hidden?: readonly string[]; // columns that are hidden by default
  first?: readonly string[]; // columns that come before the others
  place?: PlaceOf | null; // null: rows do not link to the timeline
  steps?: OfSteps; // whose timeline the places are in
  onPlace?: (place: TimelinePlace) => void; // instead of opening it in the timeline
  linkColumn?: string;
  maxHeight?: string;
  tools?: ComponentChildren; // beside the filter
  onAllRows?: () => void; // loads the rest of a truncated table
  empty?: string;
}

export function DescribedTable(props: DescribedTableProps): JSX.Element {
  const { table, id } = props;
  const [sortText, setSort] = useUrl(`${id}.sort`, props.defaultSort ?? "");
  const [filter, setFilter] = useUrl(`${id}.filter`);
  const [chosen, setChosen] = useUrl(`${id}.columns`);

  const sort = parseSort(sortText);
  const rows = useMemo(
    () => sortRows(table, filterRows(table, table.rows, filter), sort),
    [table, filter, sortText],
  );
  const defaults = useMemo(() => defaultColumns(table, props.hidden), [table]);
  const shown = chosen === "" ? defaults : new Set(chosen.split(","));
  const positions = useMemo(() => {
    const inOrder = table.columns.flatMap((column, at) => (shown.has(column.name) ? [at] : []));
    const rank = (at: number) => {
      const found = props.first?.indexOf(table.columns[at].name) ?? -1;
      return found < 0 ? table.columns.length + at : found;
    };
    return inOrder.sort((a, b) => rank(a) - rank(b));
  }, [table, chosen]);
  const columns = useMemo(() => positions.map((at) => table.columns[at]), [positions]);
  const place = placesInSteps(props.place === undefined ? placesOf(table.columns) : props.place, props.steps);
  const link = props.linkColumn ?? defaultLinkColumn(columns.map((column) => column.name));

  const choose = (name: string, on: boolean) => {
    const next = table.columns.filter((column) => (column.name === name ? on : shown.has(column.name)));
    const same = next.length === defaults.size && next.every((column) => defaults.has(column.name));
    setChosen(same ? "" : next.map((column) => column.name).join(","));
  };

  if (table.rows.length === 0) {
    return (
      <div class="described">
        {table.title && <h2>{table.title}</h2>}
        <p class="muted">{props.empty ?? "No rows."}</p>
        <Notes notes={table.notes} />
      </div>
    );
  }
  const title = table.title || table.name;
  return (
    <div class="described">
      <div class="toolbar">
        {table.title && <h2 class="table-title">{table.title}</h2>}
        {(table.rows.length >= kMinRowsForFilter || filter !== "") && (
          <input
            class="field filter"
            type="search"
            placeholder="Filter: text, or calls>100"
            aria-label={`Filter ${title}`}
            value={filter}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        )}
        {props.tools}
        <span class="table-tools">
          <RowCount table={table} shown={rows.length} onAllRows={props.onAllRows} />
          {table.columns.length >= kMinColumnsForChooser && <ColumnChooser table={table} shown={shown} onChoose={choose} />}
          <CopyButton label="Copy CSV" text={() => toCsv(table.columns, rows)} />
        </span>
      </div>
      <VirtualTable
        label={title}
        columns={columns}
        positions={positions}
        rows={rows}
        sort={sort}
        onSort={(column) => setSort(formatSort(nextSort(sort, column)))}
        place={place}
        onPlace={props.onPlace}
        linkColumn={link}
        maxHeight={props.maxHeight}
      />
      {rows.length === 0 && <p class="muted">No rows match “{filter}”.</p>}
      <Notes notes={table.notes} />
    </div>
  );
}

// The name carries the link where there is one.
function defaultLinkColumn(names: readonly string[]): string | undefined {
  return ["name", "op", "step", "start_ns", ...kNames].find((name) => names.includes(name));
}

function defaultColumns(table: Table, hidden: readonly string[] | undefined): Set<string> {
  const empty = emptyColumns(table);
  const names = table.columns.map((column) => column.name).filter((name) => !empty.has(name) && !hidden?.includes(name));
  return new Set(names.length > 0 ? names : table.columns.map((column) => column.name));
}

function RowCount(props: { table: Table; shown: number; onAllRows?: () => void }): JSX.Element {
  const { table, shown } = props;
  const sent = table.rows.length;
  return (
    <span class="muted" role="status">
      {shown < sent ? `${formatNumber(shown)} of ` : ""}
      {formatNumber(sent)} {sent === 1 ? "row" : "rows"}
      {table.rowCount > sent && (
        <>
          {` (the first of ${formatNumber(table.rowCount)}) `}
          {props.onAllRows && (
            <button class="link" onClick={props.onAllRows}>
              show all
            </button>
          )}
        </>
      )}
    </span>
  );
}

function ColumnChooser(props: {
  table: Table;
  shown: ReadonlySet<string>;
  onChoose: (name: string, on: boolean) => void;
}): JSX.Element {
  const { shown } = props;
  const close = (details: HTMLDetailsElement) => (details.open = false);
  return (
    <details
      class="chooser"
      onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) close(event.currentTarget);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") close(event.currentTarget);
      }}
    >
      <summary class="button">Columns</summary>
      {/* Focusable, so that a click between the checkboxes does not close the list. */}
      <div class="chooser-list card" tabIndex={-1}>
        {props.table.columns.map((column) => (
          <label key={column.name}>
            <input
              type="checkbox"
              checked={shown.has(column.name)}
              disabled={shown.size === 1 && shown.has(column.name)}
              onChange={(event) => props.onChoose(column.name, event.currentTarget.checked)}
            />
            {column.label} <span class="muted mono">{column.name}</span>
          </label>
        ))}
      </div>
    </details>
  );
}
