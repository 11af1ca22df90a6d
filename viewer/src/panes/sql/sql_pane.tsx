// SQL over the trace: a query, its result as a table and a plot.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Report } from "../../data/answers";
import { getUrl, setUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { ErrorBox, Loading } from "../../parts/answer";
import { Empty, Notes } from "../../parts/notes";
import { DescribedTable } from "../../parts/table/described_table";
import { formatDuration } from "../../text/format";
import { shellQuoted } from "../../text/shell";
import { examples } from "./examples";
import { ResultPlot } from "./result_plot";
import { Schema } from "./schema";
import "./sql.css";

const kRows = 10_000;

type Result = { state: "none" | "running" } | { state: "failed"; error: string } | { state: "done"; report: Report; ns: number };

export const sqlPane: Pane = { id: "sql", title: "SQL", component: SqlPane };

function SqlPane(props: PaneProps): JSX.Element {
  if (!props.trace.source.stored) return <Sql trace={props.trace} />;
  return (
    <div class="page">
      <Empty
        title="A report cannot be queried"
        notes={["A report holds results, not the trace."]}
        how="Open the trace itself to run queries:"
        code={`firelane view ${shellQuoted(props.trace.name)}`}
      />
    </div>
  );
}

function Sql(props: PaneProps): JSX.Element {
  const [query, setQuery] = useState(() => getUrl("sql.query") || examples[0]?.query || "select * from ops limit 20");
  const [result, setResult] = useState<Result>({ state: "none" });
  const running = useRef<AbortController | null>(null);

  const run = async (text: string) => {
    running.current?.abort();
    const control = new AbortController();
    running.current = control;
    setUrl({ "sql.query": text, "sql.result.sort": null, "sql.result.filter": null, "sql.result.columns": null });
    setResult({ state: "running" });
    const begin = performance.now();
    try {
      const report = await props.trace.sql(text, kRows, control.signal);
      if (!control.signal.aborted) setResult({ state: "done", report, ns: (performance.now() - begin) * 1e6 });
    } catch (error) {
      if (!control.signal.aborted) setResult({ state: "failed", error: error instanceof Error ? error.message : String(error) });
    }
  };
  // A link with a query shows its result: queries are read-only.
  useEffect(() => {
    if (getUrl("sql.query") !== "") void run(getUrl("sql.query"));
    return () => running.current?.abort();
  }, [props.trace]);

  const insert = (text: string) => setQuery((old) => (old.trim() === "" ? `select * from ${text} limit 20` : `${old}${text}`));
  return (
    <div class="page sql">
      <h1 class="sr-only">SQL</h1>
      <div class="sql-columns">
        <div class="stack">
          <section class="card">
            <textarea
              class="field query mono"
              aria-label="SQL query"
              rows={Math.min(18, Math.max(4, query.split("\n").length + 1))}
              spellcheck={false}
              value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
                event.preventDefault();
                void run(query);
              }}
            />
            <div class="toolbar">
              <button class="button primary" onClick={() => void run(query)}>
                Run <span class="key">Ctrl-Enter</span>
              </button>
              {result.state === "running" && (
                <button
                  class="button"
                  onClick={() => {
                    running.current?.abort();
                    setResult({ state: "none" });
                  }}
                >
                  Stop
                </button>
              )}
              <select
                class="field"
                aria-label="Examples"
                value=""
                onChange={(event) => {
                  const found = examples[Number(event.currentTarget.value)];
                  event.currentTarget.value = "";
                  if (!found) return;
                  setQuery(found.query);
                  void run(found.query);
                }}
              >
                <option value="">Examples…</option>
                {examples.map((example, at) => (
                  <option key={example.title} value={String(at)}>
                    {example.title}
                  </option>
                ))}
              </select>
              <span class="muted">
                SQLite, read-only. Times are ns since the start of the trace; rows with start_ns and duration_ns, or name, link to the
                timeline.
              </span>
            </div>
          </section>
          <ResultView result={result} />
        </div>
        <Schema trace={props.trace} onInsert={insert} />
      </div>
    </div>
  );
}

function ResultView(props: { result: Result }): JSX.Element | null {
  const { result } = props;
  if (result.state === "running") return <Loading text="Running…" />;
  if (result.state === "failed") return <ErrorBox text={result.error} />;
  if (result.state !== "done") return <p class="intro">Results appear here, as a table that you can sort, copy and plot.</p>;
  const table = result.report.tables[0];
  return (
    <section class="card">
      {table ? (
        <>
          <DescribedTable id="sql.result" table={table} maxHeight="480px" empty="The query returned no rows." tools={<span class="muted">{formatDuration(result.ns)}</span>} />
          <ResultPlot table={table} />
        </>
      ) : (
        <p class="muted">The query returned no table.</p>
      )}
      <Notes notes={result.report.notes} />
    </section>
  );
}
