// Which traces there are, and which of them is shown.
//
// A server with many traces (TensorBoard) loads the one that is shown when it hears of it, and may find new ones at any
// time: the list is asked for again when the window gets the focus. What is shown does not change by that.

import { useEffect, useRef, useState } from "preact/hooks";
import { listTraces } from "../data/client";
import type { Source } from "../data/source";
import type { TraceEntry } from "../data/types";

const kPollMs = 100;

export interface Traces {
  list: TraceEntry[] | null; // null until the first answer
  shown: TraceEntry | undefined;
  firstId: string | undefined; // what a link without a trace shows
  error: string | null;
}

// `chosen` is the link's; without one, or when that one is gone, the first of the first list.
export function shownTrace(list: TraceEntry[], chosen: string | undefined, firstId: string | undefined) {
  const find = (id: string | undefined) => list.find((trace) => String(trace.id) === id);
  return find(chosen) ?? find(firstId) ?? list[0];
}

export function useTraces(source: Source, chosen: string | undefined): Traces {
  const [list, setList] = useState<TraceEntry[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const first = useRef<string>();
  useEffect(() => {
    let timer = 0;
    const control = new AbortController();
    const ask = async (wanted?: string, isQuiet = false) => {
      window.clearTimeout(timer);
      try {
        const { traces } = await listTraces(source, wanted, control.signal);
        if (control.signal.aborted) return;
        if (traces.length > 0) first.current ??= String(traces[0].id);
        setList(traces);
        setError(null);
        const shown = shownTrace(traces, chosen, first.current);
        const again = shown?.state === "unloaded" ? String(shown.id) : undefined;
        const isLoading = again !== undefined || traces.some((trace) => trace.state === "loading");
        if (isLoading) timer = window.setTimeout(ask, kPollMs, again);
      } catch (reason) {
        if (!control.signal.aborted && !isQuiet) setError(reason instanceof Error ? reason.message : String(reason));
      }
    };
    const onFocus = () => void ask(undefined, true);
    if (!source.stored) window.addEventListener("focus", onFocus);
    void ask(chosen ?? first.current ?? "first");
    return () => {
      control.abort();
      window.clearTimeout(timer);
      window.removeEventListener("focus", onFocus);
    };
  }, [source, chosen]);
  return { list, shown: list ? shownTrace(list, chosen, first.current) : undefined, firstId: first.current, error };
}
