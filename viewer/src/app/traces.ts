// Which traces there are, and which of them is shown.
//
// A server with many traces (TensorBoard) loads the one that is shown when it hears of it, and may find new ones at any
// time: the list is asked for again when the window gets the focus and, while the page is on the screen, as often as the
// server says. What is shown does not change by that.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Listing, listTraces } from "../data/client";
import type { Source } from "../data/source";
import type { TraceEntry } from "../data/answers";

const kPollMs = 100; // of a server that does not wait
const kWaitMs = 250; // how often the progress of loading is shown

export interface Traces {
  list: TraceEntry[] | null; // null until the first answer
  shown: TraceEntry | undefined;
  firstId: string | undefined; // what a link without a trace shows
  added: TraceEntry | undefined; // the newest of those that came since the page was opened, until it was shown
  error: string | null;
}

// `chosen` is the link's; without one, or when that one is gone, the first of the first list.
export function shownTrace(list: TraceEntry[], chosen: string | undefined, firstId: string | undefined) {
  const find = (id: string | undefined) => list.find((trace) => String(trace.id) === id);
  return find(chosen) ?? find(firstId) ?? list[0];
}

// The first of the list (the server has the latest first) that is not among the `seen`.
export function addedTrace(list: TraceEntry[], seen: ReadonlySet<number>): TraceEntry | undefined {
  return list.find((trace) => !seen.has(trace.id));
}

export function useTraces(source: Source, chosen: string | undefined): Traces {
  const [list, setList] = useState<TraceEntry[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const first = useRef<string>();
  const seen = useRef<Set<number>>();
  useEffect(() => {
    let timer = 0;
    const control = new AbortController();
    const ask = async (wanted: Listing = {}, isQuiet = false) => {
      window.clearTimeout(timer);
      const began = performance.now();
      try {
        const { traces, reloadS } = await listTraces(source, wanted, control.signal);
        if (control.signal.aborted) return;
        if (traces.length > 0) first.current ??= String(traces[0].id);
        seen.current ??= new Set(traces.map((trace) => trace.id));
        setList(traces);
        setError(null);
        const shown = shownTrace(traces, chosen, first.current);
        const isLoading = shown?.state === "unloaded" || traces.some((trace) => trace.state === "loading");
        if (isLoading) {
          const again = { trace: String(shown.id), waitMs: kWaitMs };
          const waited = wanted.waitMs ? performance.now() - began : 0;
          timer = window.setTimeout(() => void ask(again), shown.state === "ready" ? kWaitMs : Math.max(0, kPollMs - waited));
        } else if (reloadS) timer = window.setTimeout(askIfSeen, reloadS * 1000, reloadS);
      } catch (reason) {
        if (!control.signal.aborted && !isQuiet) setError(reason instanceof Error ? reason.message : String(reason));
      }
    };
    const onFocus = () => void ask({}, true);
    const askIfSeen = (reloadS: number) => {
      if (document.visibilityState === "visible") void ask({}, true);
      else timer = window.setTimeout(askIfSeen, reloadS * 1000, reloadS);
    };
    if (!source.stored) window.addEventListener("focus", onFocus);
    // TensorBoard's reload button calls this on the frame of the tab; the trace that is shown is read again if it has changed.
    const frame: (Element & { reload?: () => void }) | null = window.frameElement;
    const reload = () => void ask({ trace: chosen ?? first.current ?? "first" }, true);
    if (frame && !source.stored) frame.reload = reload;
    void ask({ trace: chosen ?? first.current ?? "first" });
    return () => {
      control.abort();
      window.clearTimeout(timer);
      window.removeEventListener("focus", onFocus);
      if (frame?.reload === reload) delete frame.reload;
    };
  }, [source, chosen]);
  const shown = list ? shownTrace(list, chosen, first.current) : undefined;
  if (shown) seen.current?.add(shown.id);
  const added = list && seen.current ? addedTrace(list, seen.current) : undefined;
  return { list, shown, firstId: first.current, added, error };
}
