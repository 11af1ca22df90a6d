// Totals over a range, from the server's report: short tables, largest first.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Report, Table } from "../../data/answers";
import { formatByKind, formatDuration, formatTime } from "../../text/format";
import type { Range, TimelineModel } from "../../parts/timeline/model";
import { Facts, kNotStored, Section } from "./panel_parts";

const kFewRows = 12;
// The panel is narrow: columns that it leaves out.
const kHidden: Record<string, string[]> = { lanes: ["id", "lane", "group"], names: ["kind", "mean_ns"] };

export function RangePanel(props: { model: TimelineModel; range: Range; report: Report | null }): JSX.Element {
  const { model, range, report } = props;
  return (
    <Section title="Range" onClose={() => model.setRange(null)}>
      <Facts
        rows={[
          ["Duration", formatDuration(range.toNs - range.fromNs)],
          ["From", formatTime(range.fromNs, 1)],
          ["To", formatTime(range.toNs, 1)],
        ]}
      />
      {!report && <p class="muted">{model.stored ? kNotStored : "Computing…"}</p>}
      {report?.tables.map((table) => (
        <RangeTable key={table.name} model={model} table={table} />
      ))}
      {report?.notes.map((note) => (
        <p key={note} class="muted">
          {note}
        </p>
      ))}
    </Section>
  );
}

function RangeTable(props: { model: TimelineModel; table: Table }): JSX.Element | null {
  const { model, table } = props;
  const [all, setAll] = useState(false);
  if (table.rows.length === 0) return null;
  const rows = all ? table.rows : table.rows.slice(0, kFewRows);
  const hidden = kHidden[table.name] ?? [];
  const columns = table.columns
    .map((column, at) => ({ ...column, at }))
    .filter((column) => !hidden.includes(column.name));
  return (
    <>
      <h3>{table.title || table.name}</h3>
      <div class="range-table">
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.name} class={column.kind === "text" ? "" : "number"} scope="col">
                  {column.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                {columns.map(({ name, kind, at }) => {
                  const text = formatByKind(kind, row[at]);
                  return (
                    <td key={name} class={kind === "text" ? "" : "number"} title={text}>
                      {name === "name" && table.name === "names" ? (
                        <button
                          class="link slice-link"
                          onClick={() => void model.jumps.find(String(row[at]), 1, { exact: true })}
                        >
                          {text}
                        </button>
                      ) : (
                        text
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length < table.rows.length && (
        <button class="link" onClick={() => setAll(true)}>
          {table.rows.length - rows.length} more
        </button>
      )}
    </>
  );
}
