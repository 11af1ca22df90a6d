// What of a flame graph is shown and selected; both start again with another layout.

import { useEffect, useState } from "preact/hooks";
import type { FlameLayout, FlameView, Frame } from "./flame";

export function useFlame<F extends Frame>(layout: FlameLayout<F>) {
  const whole: FlameView = { fromNs: layout.fromNs, toNs: layout.toNs };
  const [view, setView] = useState<FlameView>(whole);
  const [selected, setSelected] = useState<F | null>(null);
  useEffect(() => {
    setView(whole);
    setSelected(null);
  }, [layout]);
  const zoomed = view.fromNs > layout.fromNs || view.toNs < layout.toNs;
  return { view, setView, selected, setSelected, zoomed, zoomOut: () => setView(whole) };
}
