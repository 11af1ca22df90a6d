// The view as a link: everything that a link restores is in the fragment, `#pane=timeline&timeline.y=12`.
//
// A pane's keys start with its id and a dot. Values equal to the default are left out, so links stay short.
// `urlState` is a signal: a component that reads a key renders again when it changes.

import { signal } from "@preact/signals";

export type UrlState = Readonly<Record<string, string>>;

export function parseFragment(fragment: string): UrlState {
  const out: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of new URLSearchParams(fragment.replace(/^#/, ""))) out[key] = value;
  return out;
}

// Sorted keys: the same view is always the same link.
export function formatFragment(state: UrlState): string {
  const pairs = Object.entries(state)
    .filter(([, value]) => value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${encodeURIComponent(key)}=${encode(value)}`);
  return pairs.length > 0 ? `#${pairs.join("&")}` : "";
}

// Keeps the parts that people read in a link readable.
function encode(value: string): string {
  return encodeURIComponent(value).replace(/%3A/g, ":").replace(/%2C/g, ",").replace(/%20/g, "+");
}

const inBrowser = typeof window !== "undefined";

export const urlState = signal<UrlState>(parseFragment(inBrowser ? window.location.hash : ""));

// Sets keys; "" or null removes one. `history` adds an entry that Back returns from; panning should not.
export function setUrl(changes: Record<string, string | null>, options: { history?: boolean } = {}): void {
  const next = Object.assign(Object.create(null) as Record<string, string>, urlState.value);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") delete next[key];
    else next[key] = value;
  }
  const fragment = formatFragment(next);
  if (fragment === formatFragment(urlState.value)) return;
  urlState.value = next;
  if (!inBrowser) return;
  const url = `${window.location.pathname}${window.location.search}${fragment}`;
  try {
    if (options.history) window.history.pushState(null, "", url);
    else window.history.replaceState(null, "", url);
  } catch {
    // A notebook's frame has no URL of its own; the view works without one.
  }
}

export function getUrl(key: string, fallback = ""): string {
  return urlState.value[key] ?? fallback;
}

// A value that is kept in the link: `const [sort, setSort] = useUrl("ops.sort", "total_ns")`.
export function useUrl(key: string, fallback = ""): [string, (value: string) => void] {
  const value = urlState.value[key] ?? fallback;
  return [value, (next) => setUrl({ [key]: next === fallback ? null : next })];
}

if (inBrowser) {
  const reread = () => {
    const next = parseFragment(window.location.hash);
    if (formatFragment(next) !== formatFragment(urlState.value)) urlState.value = next;
  };
  window.addEventListener("popstate", reread);
  window.addEventListener("hashchange", reread);
}
