// The timeline: lanes of threads and streams over time, with toolbar, minimap and panel. Keeps the link up to date.

import { effect } from "@preact/signals";
import type { JSX, RefObject } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Lanes } from "../../data/answers";
import { formatFragment, setUrl, urlState } from "../../page/link";
import { timelinePlace } from "../../page/navigation";
import type { Pane, PaneProps } from "../../page/pane";
import { ErrorBox, Loading, useAnswer } from "../../parts/answer";
import { dependsOn } from "../../parts/timeline/depends_on";
import { TimelineHelp } from "./help";
import { LanesView } from "../../parts/timeline/lanes_view";
import { Minimap } from "../../parts/timeline/minimap";
import { TimelineModel } from "../../parts/timeline/model";
import { Panel } from "./panel";
import { fromUrlKeys, toUrlKeys } from "../../parts/timeline/timeline_url";
import { Toolbar } from "./toolbar";
import "./timeline.css";

const kUrlDelayMs = 250;

export const timelinePane: Pane = { id: "timeline", title: "Timeline", component: TimelinePane, fills: true, help: TimelineHelp };

function TimelinePane(props: PaneProps): JSX.Element {
  const lanes = useAnswer((signal) => props.trace.lanes(signal), [props.trace]);
  if (lanes.state === "failed") return <ErrorBox text={lanes.error} />;
  if (!lanes.value) return <Loading />;
  if (lanes.value.lanes.length === 0) return <ErrorBox text="The trace has no lanes: nothing was recorded." />;
  return <Timeline trace={props.trace} lanes={lanes.value} />;
}

function Timeline(props: PaneProps & { lanes: Lanes }): JSX.Element {
  const { trace, lanes } = props;
  const model = useMemo(() => {
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    return new TimelineModel(trace, lanes, !still);
  }, [trace, lanes]);
  const searchField = useRef<HTMLInputElement>(null);
  const focusSearch = () => {
    searchField.current?.focus();
    searchField.current?.select();
  };
  useEffect(() => () => model.dispose(), [model]);
  const root = useRef<HTMLDivElement>(null);
  useLink(model, root);

  return (
    <div class="timeline" ref={root}>
      <Toolbar model={model} searchField={searchField} />
      {model.error.value && <ErrorBox text={model.error.value} />}
      {model.coarse.value && (
        <p class="timeline-notice" role="status">
          This report has no finer detail here: open the trace with <code>firelane view</code> to zoom in further.
        </p>
      )}
      <div class="timeline-body">
        <div class="timeline-main">
          <Minimap model={model} />
          <LanesView model={model} focusSearch={focusSearch} />
        </div>
        <Panel model={model} />
      </div>
      <div class="sr-only" role="status" aria-live="polite">
        {model.announce.value}
      </div>
    </div>
  );
}

// Updates the model when the link changes (opened, or Back was pressed), and the link when the model has settled. `data-link`
// tells tests whether the link is `current` or `behind`.
function useLink(model: TimelineModel, root: RefObject<HTMLElement>): void {
  useEffect(() => {
    const textOf = (keys: Readonly<Record<string, string | null>>) =>
      formatFragment(
        Object.fromEntries(
          Object.entries(keys).filter(([key, value]) => key.startsWith("timeline.") && value),
        ) as Record<string, string>,
      );
    let written = "";
    let timer = 0;
    const write = () => {
      const keys = toUrlKeys(model.toUrl());
      written = textOf(keys);
      setUrl(keys);
      root.current?.setAttribute("data-link", "current");
    };
    const stopReading = effect(() => {
      const now = textOf(urlState.value);
      if (now === written) return;
      written = now;
      window.clearTimeout(timer); // the link wins over what was about to be written
      model.fromUrl(fromUrlKeys(urlState.value));
    });
    const stopPlaces = effect(() => {
      const place = timelinePlace.value;
      if (!place) return;
      timelinePlace.value = null;
      void model.open(place);
    });
    const stopWriting = effect(() => {
      const { viewChanged, scrollY, selected, range, jumps, shown } = model;
      dependsOn(viewChanged, scrollY, selected, range, jumps.text, shown.options);
      window.clearTimeout(timer);
      timer = window.setTimeout(write, kUrlDelayMs);
      root.current?.setAttribute("data-link", "behind");
    });
    return () => {
      stopWriting();
      stopReading();
      stopPlaces();
      window.clearTimeout(timer);
    };
  }, [model]);
}
