// Memory over time by category, what is allocated at a point in time, and how fragmented the allocator is.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { MemoryCurve, Report } from "../../data/answers";
import type { TraceClient } from "../../data/client";
import { setUrl, useUrl } from "../../page/link";
import { openInTimeline } from "../../page/navigation";
import type { Pane, PaneProps } from "../../page/pane";
import { Answered, useAnswer } from "../../parts/answer";
import { exactPeak, shownCategories } from "../../parts/memory/curve";
import { MemoryChart } from "../../parts/memory/memory_chart";
import { Empty, Facts, Notes } from "../../parts/notes";
import { ReportTables, useReport } from "../../parts/report/report_view";
import { DescribedTable } from "../../parts/table/described_table";
import { formatBytes, formatTime } from "../../text/format";
import { FreeChart } from "./free_chart";
import { SegmentMap } from "./segment_map";
import "./memory.css";

const kBins = 1000;

// Shown above in more detail.
const kShownAbove = ["at_peak", "owners"];

export const memoryPane: Pane = { id: "memory", title: "Memory", component: MemoryPane };

function MemoryPane(props: PaneProps): JSX.Element {
  const [device] = useUrl("memory.device");
  const answer = useAnswer(
    (signal) => props.trace.memoryCurve({ device: device || null, bins: kBins }, signal),
    [props.trace, device],
  );
  const { answer: report, loadAll } = useReport(props.trace, "memory");
  return (
    <div class="page">
      <h1 class="sr-only">Memory</h1>
      <p class="intro">Memory in use over time, by category. Click a point in time to see what was allocated then, and by what.</p>
      <Answered answer={answer}>
        {(curve) =>
          curve.device === null ? (
            <Empty
              title="No memory events in this trace"
              notes={["Allocations and their owners need a recording with memory profiling."]}
              code="profile(profile_memory=True, record_shapes=True)"
            />
          ) : (
            <Memory
              trace={props.trace}
              curve={curve}
              device={curve.device}
              report={report.value}
              peakIsKnown={report.state !== "loading"}
              setDevice={(name) => setUrl({ "memory.device": name, "memory.at": null })}
            />
          )
        }
      </Answered>
      <Answered answer={report}>
        {(value) => (
          <div class="stack">
            {answer.value?.device && <Notes notes={value.notes} />}
            <ReportTables
              id="memory"
              report={value}
              onAllRows={loadAll}
              skip={kShownAbove}
              tables={{ steps: { linkColumn: "step" }, allocator: { linkColumn: "moment" }, allocator_shares: { place: null } }}
            />
          </div>
        )}
      </Answered>
    </div>
  );
}

function Memory(props: {
  trace: TraceClient;
  curve: MemoryCurve;
  device: string;
  report: Report | null;
  peakIsKnown: boolean; // nothing is requested about it before
  setDevice: (device: string) => void;
}): JSX.Element {
  const { trace, curve, device } = props;
  const peak = props.peakIsKnown ? exactPeak(curve, props.report) : null;
  const [at, setAt] = useUrl("memory.at");
  const atNs = at !== "" && Number.isFinite(Number(at)) ? Number(at) : (peak?.atNs ?? null);
  const isPeak = at === "" && peak !== null;
  // By a hundredth of the time: the keyboard's alternative to a click on the chart.
  const move = (direction: 1 | -1) => {
    const endNs = curve.fromNs + curve.allocatedBytes.length * curve.binNs;
    const next = (atNs ?? curve.fromNs) + (direction * (endNs - curve.fromNs)) / 100;
    setAt(String(Math.round(Math.min(Math.max(next, curve.fromNs), endNs))));
  };
  return (
    <div class="stack">
      <section class="card">
        <div class="toolbar">
          <h2 class="table-title">Memory over time</h2>
          {curve.devices.length > 1 ? (
            <select
              class="field"
              aria-label="Device"
              value={device}
              onChange={(event) => props.setDevice(event.currentTarget.value)}
            >
              {curve.devices.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          ) : (
            <span class="muted">{device}</span>
          )}
          {peak && (
            <button class="button" onClick={() => setAt("")} aria-pressed={isPeak}>
              Peak: {formatBytes(peak.bytes)}
            </button>
          )}
          {atNs !== null && (
            <span class="segmented" role="group" aria-label="Point in time">
              <button class="button" onClick={() => move(-1)}>
                Earlier
              </button>
              <button class="button" onClick={() => move(1)}>
                Later
              </button>
            </span>
          )}
          {atNs !== null && (
            <button class="button" onClick={() => openInTimeline({ startNs: atNs, durationNs: curve.binNs })}>
              Show {formatTime(atNs, Math.max(1, curve.binNs))} in the timeline
            </button>
          )}
        </div>
        <MemoryChart curve={curve} height={260} peak={peak} atNs={atNs} onClick={(ns) => setAt(String(Math.round(ns)))} />
        <p class="muted hint">Click a point in time to see below what was allocated then.</p>
        {curve.freeBytes && curve.largestFreeBytes && (
          <FreeChart
            curve={{ ...curve, freeBytes: curve.freeBytes, largestFreeBytes: curve.largestFreeBytes }}
            atNs={atNs}
            onClick={(ns) => setAt(String(Math.round(ns)))}
          />
        )}
      </section>
      {atNs !== null && (
        <>
          <Alive
            trace={trace}
            device={device}
            atNs={atNs}
            title={`Alive at ${isPeak ? "the peak, " : ""}${formatTime(atNs, Math.max(1, curve.binNs))}`}
          />
          <Segments trace={trace} curve={curve} device={device} atNs={atNs} />
        </>
      )}
    </div>
  );
}

function Alive(props: { trace: TraceClient; device: string; atNs: number; title: string }): JSX.Element {
  const { trace, device, atNs } = props;
  const answer = useAnswer((signal) => trace.memoryAlive(device, atNs, signal), [trace, device, atNs]);
  return (
    <section class="card">
      <h2>{props.title}</h2>
      <Answered answer={answer}>
        {(report) => (
          <div class="stack">
            <Facts facts={report.facts} />
            {report.tables.map((table) => (
              <DescribedTable key={table.name} id={`memory.${table.name}`} table={table} maxHeight="380px" />
            ))}
            <Notes notes={report.notes} />
          </div>
        )}
      </Answered>
    </section>
  );
}

function Segments(props: { trace: TraceClient; curve: MemoryCurve; device: string; atNs: number }): JSX.Element {
  const { trace, curve, device, atNs } = props;
  const categories = useMemo(() => shownCategories(curve), [curve]);
  const answer = useAnswer((signal) => trace.memorySegments(device, atNs, signal), [trace, device, atNs]);
  return (
    <section class="card">
      <h2>Fragmentation</h2>
      <Answered answer={answer}>{(segments) => <SegmentMap answer={segments} categories={categories} />}</Answered>
    </section>
  );
}
