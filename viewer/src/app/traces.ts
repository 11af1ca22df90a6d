// Which traces there are, and which of them is shown.
//
// A server with many traces (TensorBoard) loads a trace when the page asks for it, and may find new ones at any time: the list
// is fetched again when the window gets the focus and, while the page is visible, at the interval that the server gives. That
// never changes which trace is shown.

import { useEffect, useRef, useState } from "preact/hooks";
import type { TraceEntry, TraceList } from "../data/answers";
import { type Listing, listTraces } from "../data/client";
import type { Source } from "../data/source";

const kPollMs = 100; // for a server that does not hold its answer
const kWaitMs = 250; // between updates of the loading progress

export interface Traces {
  answer: TraceList | null; // null until the first answer
  shown: TraceEntry | undefined;
  firstId: string | undefined; // shown by a link that names no trace
  added: TraceEntry | undefined; // the newest trace found since the page was opened, until it has been shown
  error: string | null;
}

// `chosen` is the link's trace; without one, or when it is gone, the first trace of the first list.
export function shownTrace(list: TraceEntry[], chosen: string | undefined, firstId: string | undefined) {
  const find = (id: string | undefined) => list.find((trace) => String(trace.id) === id);
  return find(chosen) ?? find(firstId) ?? list[0];
}

// The first trace that was not seen yet. The server lists the latest first.
export function addedTrace(list: TraceEntry[], seen: ReadonlySet<number>): TraceEntry | undefined {
  return list.find((trace) => !seen.has(trace.id));
}

// `needs`: whether the pane that such an answer leads to shows a trace. Otherwise one that is not loaded yet is left alone.
export function useTraces(
  source: Source,
  chosen: string | undefined,
  needs: (answer: TraceList | null) => boolean,
): Traces {
  const [answer, setAnswer] = useState<TraceList | null>(null);
  const [error, setError] = useState<string | null>(null);
  const latest = useRef(needs);
  latest.current = needs;
  const needed = needs(answer);
  const first = useRef<string>();
  const seen = useRef<Set<number>>();
  useEffect(() => {
    let timer = 0;
    const control = new AbortController();
    const ask = async (wanted: Listing = {}, silent = false) => {
      window.clearTimeout(timer);
      const start = performance.now();
      try {
        const listed = await listTraces(source, wanted, control.signal);
        if (control.signal.aborted) return;
        const { traces, reloadS } = listed;
        if (traces.length > 0) first.current ??= String(traces[0].id);
        seen.current ??= new Set(traces.map((trace) => trace.id));
        setAnswer(listed);
        setError(null);
        const shown = shownTrace(traces, chosen, first.current);
        const isLoading = (latest.current(listed) && shown?.state === "unloaded") || traces.some((trace) => trace.state === "loading");
        if (isLoading) {
          const again = { trace: String(shown.id), waitMs: kWaitMs };
          const waited = wanted.waitMs ? performance.now() - start : 0;
          timer = window.setTimeout(() => void ask(again), shown.state === "ready" ? kWaitMs : Math.max(0, kPollMs - waited));
        } else if (reloadS) timer = window.setTimeout(askIfVisible, reloadS * 1000, reloadS);
      } catch (reason) {
        if (!control.signal.aborted && !silent) setError(reason instanceof Error ? reason.message : String(reason));
      }
    };
    const onFocus = () => void ask({}, true);
    const askIfVisible = (reloadS: number) => {
      if (document.visibilityState === "visible") void ask({}, true);
      else timer = window.setTimeout(askIfVisible, reloadS * 1000, reloadS);
    };
    if (!source.stored) window.addEventListener("focus", onFocus);
    // TensorBoard's reload button calls this on the tab's frame; the shown trace is loaded again if its file changed.
    const frame: (Element & { reload?: () => void }) | null = window.frameElement;
    const reload = () => void ask({ trace: chosen ?? first.current ?? "first" }, true);
    if (frame && !source.stored) frame.reload = reload;
    void ask(needed ? { trace: chosen ?? first.current ?? "first" } : {});
    return () => {
      control.abort();
      window.clearTimeout(timer);
      window.removeEventListener("focus", onFocus);
      if (frame?.reload === reload) delete frame.reload;
    };
  }, [source, chosen, needed]);
  const shown = answer ? shownTrace(answer.traces, chosen, first.current) : undefined;
  if (shown) seen.current?.add(shown.id);
  const added = answer && seen.current ? addedTrace(answer.traces, seen.current) : undefined;
  return { answer, shown, firstId: first.current, added, error };
}
