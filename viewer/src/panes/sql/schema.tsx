// The tables and views that queries can read, with their columns.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";

const kTablesQuery = "select name, type from sqlite_master where type in ('table', 'view') order by type desc, name";

export function Schema(props: PaneProps & { onInsert: (text: string) => void }): JSX.Element {
  const answer = useAnswer((signal) => props.trace.sql(kTablesQuery, 1000, signal), [props.trace]);
  return (
    <aside class="card schema">
      <h2>Tables</h2>
      <Answered answer={answer}>
        {(report) => (
          <ul>
            {report.tables[0].rows.map(([name, type]) => (
              <li key={String(name)}>
                <SchemaTable {...props} name={String(name)} isView={type === "view"} />
              </li>
            ))}
          </ul>
        )}
      </Answered>
    </aside>
  );
}

function SchemaTable(props: PaneProps & { name: string; isView: boolean; onInsert: (text: string) => void }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="mono">{props.name}</span> {props.isView && <span class="muted">view</span>}
      </summary>
      {open && <Columns {...props} />}
    </details>
  );
}

function Columns(props: PaneProps & { name: string; onInsert: (text: string) => void }): JSX.Element {
  // The server listed the name, but it is quoted anyway.
  const quoted = `"${props.name.replaceAll('"', '""')}"`;
  const answer = useAnswer((signal) => props.trace.sql(`pragma table_info(${quoted})`, 1000, signal), [props.name]);
  return (
    <Answered answer={answer}>
      {(report) => {
        const at = (name: string) => report.tables[0].columns.findIndex((column) => column.name === name);
        const [nameAt, typeAt] = [at("name"), at("type")];
        return (
          <ul class="columns">
            {report.tables[0].rows.map((row) => (
              <li key={String(row[nameAt])}>
                <button class="link mono" title="Add to the query" onClick={() => props.onInsert(String(row[nameAt]))}>
                  {String(row[nameAt])}
                </button>{" "}
                <span class="muted">{String(row[typeAt] ?? "").toLowerCase()}</span>
              </li>
            ))}
          </ul>
        );
      }}
    </Answered>
  );
}
