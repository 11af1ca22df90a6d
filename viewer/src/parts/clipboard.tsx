// A button that copies text and confirms it.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

// For pages without clipboard access (in some browsers, a report opened from disk).
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr-only";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
  }
}

export function CopyButton(props: { text: () => string; label: string; class?: string }): JSX.Element {
  const [done, setDone] = useState<string | null>(null);
  useEffect(() => {
    if (done === null) return;
    const timer = window.setTimeout(() => setDone(null), 1500);
    return () => window.clearTimeout(timer);
  }, [done]);
  const copy = async () => setDone((await copyText(props.text())) ? "Copied" : "Could not copy");
  return (
    <button class={props.class ?? "button"} onClick={() => void copy()} aria-live="polite">
      {done ?? props.label}
    </button>
  );
}
