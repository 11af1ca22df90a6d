// Details of the selected slice, gap or range. Names come from the trace and are not trusted: everything is rendered as text.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Arrow, FoundSlice, SliceDetail } from "../../data/answers";
import { kindText } from "../../parts/slice_colors";
import { formatDuration, formatNumber, formatTime } from "../../text/format";
import type { TimelineModel } from "../../parts/timeline/model";
import { Facts, kNotStored, Section } from "./panel_parts";
import { RangePanel } from "./range_panel";
import { argText, workFacts } from "./work_facts";


const kFewChildren = 8;
const kFewArrows = 12;

export function Panel(props: { model: TimelineModel }): JSX.Element | null {
  const { model } = props;
  const slice = model.selected.value;
  const gap = model.gap.value;
  const range = model.dragging.value ? null : model.range.value;
  if (!model.panelOpen) return null;
  return (
    <aside class="timeline-panel" aria-label="Selection" tabIndex={0}>
      {range && <RangePanel model={model} range={range} report={model.rangeReport.value} />}
      {gap && (
        <Section title="Idle gap" onClose={() => model.select(null)}>
          <Facts
            rows={[
              ["Duration", formatDuration(gap.durationNs)],
              ["Start", exactTime(gap.startNs)],
              ["Cause", gap.causeText],
              ["Lane", laneName(model, gap.lane)],
            ]}
          />
        </Section>
      )}
      {slice && <SlicePanel model={model} slice={slice} detail={model.detail.value} />}
    </aside>
  );
}

// To the nanosecond, for comparing and copying.
function exactTime(ns: number): string {
  return formatTime(ns, 1);
}

function laneName(model: TimelineModel, id: number): string {
  const lane = model.laneOf.get(id);
  return lane ? `${lane.group}, ${lane.name}` : String(id);
}

function SlicePanel(props: { model: TimelineModel; slice: FoundSlice; detail: SliceDetail | null }): JSX.Element {
  const { model, slice, detail } = props;
  const rows: [string, ComponentChildren][] = [
    ["Duration", formatDuration(slice.durationNs)],
    ["Start", exactTime(slice.startNs)],
  ];
  if (detail) {
    if (detail.selfNs !== null && detail.childCount > 0) rows.push(["Self time", formatDuration(detail.selfNs)]);
    const kind = kindText(detail.kind);
    rows.push(["Kind", detail.category && detail.category !== detail.kind ? `${kind} (${detail.category})` : kind]);
    if (detail.step !== null) rows.push(["Step", <StepLink model={model} step={detail.step} />]);
    rows.push(...workFacts(detail));
    if (detail.module) rows.push(["Module", <span class="mono">{detail.module}</span>]);
  }
  rows.push(["Lane", laneName(model, slice.lane)]);
  return (
    <Section title="Slice" onClose={() => model.select(null)}>
      <p class="slice-name">{detail?.name ?? slice.name}</p>
      <div class="toolbar">
        <button class="button" onClick={() => model.fit()} title="Fit (F)">
          Fit
        </button>
        <button class="button" onClick={() => model.markSelection()} title="Mark as range (M)">
          Mark
        </button>
        <button class="button" onClick={() => model.reveal(slice)}>
          Show
        </button>
      </div>
      <Facts rows={rows} />
      {!detail && <p class="muted">{model.stored ? kNotStored : "Loading…"}</p>}
      {detail && <SameName model={model} detail={detail} />}
      {detail && detail.arrows.length > 0 && <Arrows model={model} detail={detail} />}
      {detail && (detail.parent !== null || detail.childCount > 0) && <Family model={model} detail={detail} />}
      {detail && <Args args={detail.args} />}
      {detail && detail.stack.length > 0 && (
        <>
          <h3>Stack</h3>
          <ol class="slice-stack mono">
            {detail.stack.map((line, i) => (
              <li key={i}>{line}</li>
            ))}
          </ol>
        </>
      )}
    </Section>
  );
}

function StepLink(props: { model: TimelineModel; step: number }): JSX.Element {
  return (
    <button class="link" onClick={() => props.model.jumps.showStep(props.step)}>
      {props.step}
    </button>
  );
}

function SliceLink(props: { model: TimelineModel; slice: FoundSlice; text?: string }): JSX.Element {
  const { model, slice } = props;
  return (
    <button class="link slice-link" title={slice.name} onClick={() => model.select(slice, { reveal: true })}>
      {props.text ?? slice.name}
    </button>
  );
}

function SameName(props: { model: TimelineModel; detail: SliceDetail }): JSX.Element {
  const { model, detail } = props;
  const { count, totalNs, minNs, medianNs, maxNs, longer, previous, next } = detail.sameName;
  return (
    <>
      <h3>Same name</h3>
      <Facts
        rows={[
          ["Count", formatNumber(count)],
          ["Total", formatDuration(totalNs)],
          ["Median", formatDuration(medianNs)],
          ["Shortest", formatDuration(minNs)],
          ["Longest", formatDuration(maxNs)],
          ["Longer", formatNumber(longer)],
        ]}
      />
      <div class="toolbar">
        <button
          class="button"
          disabled={!previous}
          onClick={() => model.jumps.sameName(-1)}
          title="Previous with this name ([)"
        >
          ‹ Previous
        </button>
        <button class="button" disabled={!next} onClick={() => model.jumps.sameName(1)} title="Next with this name (])">
          Next ›
        </button>
        <button class="button" disabled={longer === 0} onClick={() => model.jumps.longest()} title="Longest with this name (L)">
          Longest
        </button>
      </div>
    </>
  );
}

function Arrows(props: { model: TimelineModel; detail: SliceDetail }): JSX.Element {
  const { model, detail } = props;
  const [all, setAll] = useState(false);
  const shown = all ? detail.arrows : detail.arrows.slice(0, kFewArrows);
  return (
    <>
      <h3>Arrows</h3>
      <ul class="slice-list">
        {shown.map((arrow: Arrow, i) => (
          <li key={i}>
            <span class="muted arrow-kind">{arrow.kind}</span>
            <span class="arrow-ends">
              <ArrowEnd model={model} slice={arrow.from} current={detail.ref} />
              <span class="muted" aria-label="to">
                →
              </span>
              <ArrowEnd model={model} slice={arrow.to} current={detail.ref} />
            </span>
          </li>
        ))}
      </ul>
      <More shown={shown.length} of={detail.arrows.length} onClick={() => setAll(true)} />
    </>
  );
}

function ArrowEnd(props: { model: TimelineModel; slice: FoundSlice; current: string }): JSX.Element {
  if (props.slice.ref === props.current) return <span class="slice-link">this</span>;
  return <SliceLink model={props.model} slice={props.slice} />;
}

function Family(props: { model: TimelineModel; detail: SliceDetail }): JSX.Element {
  const { model, detail } = props;
  const [all, setAll] = useState(false);
  const shown = all ? detail.children : detail.children.slice(0, kFewChildren);
  return (
    <>
      {detail.parent && (
        <>
          <h3>Parent</h3>
          <SliceLink model={model} slice={detail.parent} />
        </>
      )}
      {detail.childCount > 0 && (
        <>
          <h3>{detail.childCount === 1 ? "1 child" : `${formatNumber(detail.childCount)} children`}</h3>
          <ul class="slice-list">
            {shown.map((child) => (
              <li key={child.ref}>
                <SliceLink model={model} slice={child} />
                <span class="muted number">{formatDuration(child.durationNs)}</span>
              </li>
            ))}
          </ul>
          <More shown={shown.length} of={detail.children.length} onClick={() => setAll(true)} />
        </>
      )}
    </>
  );
}

function More(props: { shown: number; of: number; onClick: () => void }): JSX.Element | null {
  if (props.shown >= props.of) return null;
  return (
    <button class="link" onClick={props.onClick}>
      {formatNumber(props.of - props.shown)} more
    </button>
  );
}

function Args(props: { args: Record<string, unknown> }): JSX.Element | null {
  const entries = Object.entries(props.args);
  if (entries.length === 0) return null;
  return (
    <>
      <h3>Args</h3>
      <dl class="slice-facts slice-args">
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd class="mono">{argText(value)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
