// The timeline's controls: search, steps, gaps, zoom, which lanes are shown.

import type { JSX, RefObject } from "preact";
import { useState } from "preact/hooks";
import { formatDuration, formatNumber } from "../../text/format";
import { dependsOn } from "../../parts/timeline/depends_on";
import { matchCount } from "../../parts/timeline/jumps";
import type { TimelineModel } from "../../parts/timeline/model";
import "./toolbar.css";

export function Toolbar(props: { model: TimelineModel; searchField: RefObject<HTMLInputElement> }): JSX.Element {
  const { model } = props;
  const hasDevice = model.lanes.lanes.some((lane) => lane.kind === "stream");
  return (
    <div class="toolbar timeline-toolbar" role="toolbar" aria-label="Timeline">
      <Search model={model} field={props.searchField} />
      <StepChooser model={model} />
      <span class="button-group" hidden={model.stored || !hasDevice}>
        <button class="button" onClick={() => void model.jumps.nextGap(-1)} title="Previous idle gap on a device (⇧G)">
          ‹ Gap
        </button>
        <button class="button" onClick={() => void model.jumps.nextGap(1)} title="Next idle gap on a device (G)">
          Gap ›
        </button>
      </span>
      <span class="button-group">
        <button class="button" aria-label="Zoom out" title="Zoom out (S)" onClick={() => model.zoom(0.5)}>
          −
        </button>
        <button class="button" aria-label="Zoom in" title="Zoom in (W)" onClick={() => model.zoom(2)}>
          +
        </button>
        <button class="button" title="Fit the range or selection, or the whole trace (F)" onClick={() => model.fit()}>
          Fit
        </button>
        <button
          class="button"
          title="Show the whole trace"
          onClick={() => model.setView({ fromNs: 0, toNs: model.lanes.endNs }, { animate: true })}
        >
          All
        </button>
      </span>
      <button
        class="button"
        aria-pressed={model.shown.options.value.compact}
        title="Compact rows (V)"
        onClick={() => model.shown.toggleCompact()}
      >
        Compact
      </button>
      <span class="timeline-spacer" />
      <Shown model={model} />
      <input
        class="field lane-filter"
        type="search"
        placeholder="Filter lanes"
        aria-label="Filter lanes by name"
        value={model.shown.options.value.filter}
        onInput={(event) => model.shown.setFilter(event.currentTarget.value)}
      />
      <HiddenLanes model={model} />
    </div>
  );
}

function Search(props: { model: TimelineModel; field: RefObject<HTMLInputElement> }): JSX.Element {
  const { model, field } = props;
  const [open, setOpen] = useState(false);
  const text = model.jumps.text.value;
  const answer = model.jumps.matches.value;
  const go = (direction: 1 | -1) => void model.jumps.find(text, direction);
  return (
    <span
      class="timeline-search"
      role="search"
      onFocusCapture={() => setOpen(true)}
      onBlurCapture={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOpen(false);
      }}
    >
      <input
        ref={field}
        class="field"
        type="search"
        placeholder="Search slices  ( / )"
        aria-label="Search slices by name"
        value={text}
        onInput={(event) => model.jumps.setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") {
            if (text === "") event.currentTarget.blur();
            model.jumps.setText("");
          }
        }}
      />
      {text !== "" && !model.stored && (
        <>
          <span class="muted match-count" role="status">
            {answer ? matchCount(answer.slices) : "…"}
          </span>
          <button class="button" aria-label="Previous match" title="Previous match (⇧Enter)" onClick={() => go(-1)}>
            ‹
          </button>
          <button class="button" aria-label="Next match" title="Next match (Enter)" onClick={() => go(1)}>
            ›
          </button>
          <button class="button" title="Longest match" onClick={() => void model.jumps.find(text, 0)}>
            Longest
          </button>
        </>
      )}
      {open && answer && answer.names.length > 0 && text !== "" && (
        <ul class="search-names" aria-label="Matching names">
          {answer.names.slice(0, 30).map((match) => (
            <li key={match.name}>
              <button
                class="link"
                title={match.name}
                onClick={() => {
                  setOpen(false);
                  field.current?.blur();
                  void model.jumps.find(match.name, 0, { exact: true });
                }}
              >
                {match.name}
              </button>
              <span class="muted number">{formatNumber(match.slices)}</span>
              <span class="muted number">{formatDuration(match.totalNs)}</span>
            </li>
          ))}
        </ul>
      )}
    </span>
  );
}

function StepChooser(props: { model: TimelineModel }): JSX.Element | null {
  const { model } = props;
  const { steps } = model.lanes;
  if (steps.length === 0) return null;
  dependsOn(model.viewChanged);
  return (
    <span class="button-group">
      <button class="button" aria-label="Previous step" title="Previous step (,)" onClick={() => model.jumps.nextStep(-1)}>
        ‹
      </button>
      <select
        class="field"
        aria-label="Step"
        value={String(model.jumps.currentStep() ?? "")}
        onChange={(event) => {
          if (event.currentTarget.value !== "") model.jumps.showStep(Number(event.currentTarget.value));
          event.currentTarget.blur(); // back to the timeline's shortcuts
        }}
      >
        <option value="">Step…</option>
        {steps.slice(0, 2000).map((step) => (
          <option key={step.number} value={String(step.number)}>
            {`Step ${step.number}`}
          </option>
        ))}
      </select>
      <button class="button" aria-label="Next step" title="Next step (.)" onClick={() => model.jumps.nextStep(1)}>
        ›
      </button>
    </span>
  );
}

// How much time is visible.
function Shown(props: { model: TimelineModel }): JSX.Element {
  dependsOn(props.model.viewChanged);
  const { fromNs, toNs } = props.model.view;
  return <span class="muted timeline-shown">{formatDuration(toNs - fromNs)} shown</span>;
}

function HiddenLanes(props: { model: TimelineModel }): JSX.Element | null {
  const { model } = props;
  const { hiddenCount } = model.shown.layout.value;
  if (hiddenCount === 0 && model.shown.options.value.filter === "") return null;
  return (
    <button class="button" onClick={() => model.shown.showAll()}>
      {hiddenCount > 0 ? `Show ${hiddenCount} hidden` : "Show all"}
    </button>
  );
}
