// Requests of a component: loading, failed and ready as one value, and how each looks.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import "./answer.css";

export type Answer<T> =
  | { state: "loading"; value: T | null }
  | { state: "ready"; value: T }
  | { state: "failed"; value: T | null; error: string };

// Loads again when `deps` change; a late answer is dropped. The last value stays while the next one loads.
export function useAnswer<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ state: "loading", value: null });
  // A layout effect: the request starts one frame earlier.
  useLayoutEffect(() => {
    const control = new AbortController();
    setAnswer((last) => ({ state: "loading", value: last.value }));
    load(control.signal).then(
      (value) => {
        if (!control.signal.aborted) setAnswer({ state: "ready", value });
      },
      (error: unknown) => {
        if (control.signal.aborted) return;
        const text = error instanceof Error ? error.message : String(error);
        setAnswer((last) => ({ state: "failed", value: last.value, error: text }));
      },
    );
    return () => control.abort();
  }, deps);
  return answer;
}

// Renders an answer: a loading text, the error, or `children(value)`.
export function Answered<T>(props: { answer: Answer<T>; children: (value: T) => ComponentChildren }): JSX.Element {
  const { answer } = props;
  if (answer.state === "failed") return <ErrorBox text={answer.error} />;
  if (answer.value === null) return <Loading />;
  return <div class={answer.state === "loading" ? "stale" : ""}>{props.children(answer.value)}</div>;
}

export function Loading(props: { text?: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      {props.text ?? "Loading…"}
    </p>
  );
}

export function ErrorBox(props: { text: string }): JSX.Element {
  return (
    <p class="error" role="alert">
      {props.text}
    </p>
  );
}
