// The tree of nn.Modules: forward and backward time, memory, FLOPs.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Cell, Table } from "../../data/answers";
import { useUrl } from "../../page/link";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered } from "../../parts/answer";
import { CopyButton } from "../../parts/clipboard";
import { Checkbox } from "../../parts/fields";
import { Empty, Facts, Notes } from "../../parts/notes";
import { ReportTables, useReport } from "../../parts/report/report_view";
import { StepsLabel } from "../../parts/steps/steps_label";
import { toCsv } from "../../parts/table/csv";
import { emptyColumns, filterRows, formatSort, nextSort, parseSort } from "../../parts/table/rows";
import { VirtualTable } from "../../parts/table/virtual_table";
import { formatNumber } from "../../text/format";
import { buildTree, matchingNodes, type TreeNode, visibleNodes } from "./tree";

const kHidden = new Set(["depth", "parent", "type", "self_host_ns", "backward_host_ns"]);
const kOpenDepth = 2; // expanded by default

export const modulesPane: Pane = { id: "modules", title: "Modules", component: ModulesPane };

function ModulesPane(props: PaneProps): JSX.Element {
  const [byType, setByType] = useUrl("modules.by");
  const { answer } = useReport(props.trace, "modules", byType === "type" ? { by_type: true } : {});
  return (
    <div class="page">
      <h1 class="sr-only">Modules</h1>
      <p class="intro">
        Every nn.Module including its submodules: host time, forward and backward device time, and the memory it keeps. <StepsLabel />
      </p>
      <Answered answer={answer}>
        {(report) => {
          const modules = report.tables.find((table) => table.name === "modules");
          if (!modules || modules.rows.length === 0) {
            return (
              <div class="stack">
                <Empty
                  title="No modules in this trace"
                  notes={["Times per nn.Module need a recording with module information.", ...report.notes]}
                  code="profile(with_modules=True, with_stack=True)   # or record with firelane"
                />
                <ReportTables id="modules" report={report} skip={["modules"]} />
              </div>
            );
          }
          return (
            <div class="stack">
              <Facts facts={report.facts} />
              <section class="card">
                <ModuleTree table={modules} flat={byType === "type"} setByType={setByType} />
              </section>
              <Notes notes={report.notes} />
              <ReportTables id="modules" report={report} skip={["modules"]} tables={{ phases: { place: null } }} />
            </div>
          );
        }}
      </Answered>
    </div>
  );
}

function ModuleTree(props: {
  table: Table;
  flat: boolean; // by type
  setByType: (value: string) => void;
}): JSX.Element {
  const { table } = props;
  const [sortText, setSort] = useUrl("modules.sort");
  const [filter, setFilter] = useUrl("modules.filter");
  // What the user expanded or collapsed; everything else depends on its depth.
  const [toggled, setToggled] = useState<ReadonlyMap<number, boolean>>(new Map());
  const [openDepth, setOpenDepth] = useState(kOpenDepth);

  const roots = useMemo(() => (props.flat ? flatTree(table) : buildTree(table.columns, table.rows)), [table, props.flat]);
  const sort = parseSort(sortText);
  const isExpanded = (node: TreeNode) =>
    node.children.length > 0 && (filter !== "" || (toggled.get(node.index) ?? node.depth < openDepth));
  const nodes = useMemo(() => {
    const left = filter === "" ? roots : matchingNodes(roots, (row) => filterRows(table, [row], filter).length > 0);
    return visibleNodes(left, { columns: table.columns, sort, isExpanded });
  }, [roots, filter, sortText, toggled, openDepth]);
  const byRow = useMemo(() => new Map(nodes.map((node) => [node.row, node])), [nodes]);
  const rows = useMemo(() => nodes.map((node) => node.row), [nodes]);
  const positions = useMemo(() => {
    const empty = emptyColumns(table);
    return table.columns.flatMap((column, at) => (empty.has(column.name) || kHidden.has(column.name) ? [] : [at]));
  }, [table]);
  const columns = useMemo(() => positions.map((at) => table.columns[at]), [positions]);

  const toggle = (row: Cell[], expand: boolean) => {
    const node = byRow.get(row);
    if (node) setToggled(new Map(toggled).set(node.index, expand));
  };
  const setAll = (depth: number) => {
    setToggled(new Map());
    setOpenDepth(depth);
  };
  const nameAt = table.columns.findIndex((column) => column.name === "module");
  return (
    <>
      <div class="toolbar">
        <input
          class="field filter"
          type="search"
          placeholder="Filter: text, or calls>100"
          aria-label="Filter modules"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <Checkbox label="group by type" value={props.flat} onChange={(on) => props.setByType(on ? "type" : "")} />
        {!props.flat && (
          <>
            <button class="button" onClick={() => setAll(Infinity)}>
              Expand all
            </button>
            <button class="button" onClick={() => setAll(0)}>
              Collapse all
            </button>
          </>
        )}
        <span class="table-tools">
          <span class="muted" role="status">
            {formatNumber(rows.length)} of {formatNumber(table.rowCount)} modules
          </span>
          <CopyButton label="Copy CSV" text={() => toCsv(table.columns, rows)} />
        </span>
      </div>
      <VirtualTable
        label="Modules"
        columns={columns}
        positions={positions}
        rows={rows}
        sort={sort}
        onSort={(column) => setSort(formatSort(nextSort(sort, column)))}
        linkColumn="module"
        place={props.flat ? null : (row) => ({ name: `nn.Module: ${String(row[nameAt])}` })}
        tree={
          props.flat
            ? undefined
            : (row) => {
                const node = byRow.get(row)!;
                return { level: node.depth, expanded: node.children.length > 0 ? isExpanded(node) : null };
              }
        }
        onToggle={toggle}
        maxHeight="calc(100vh - 290px)"
      />
    </>
  );
}

function flatTree(table: Table): TreeNode[] {
  return table.rows.map((row, index) => ({ row, index, depth: 0, children: [] }));
}
