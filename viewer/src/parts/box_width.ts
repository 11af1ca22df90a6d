// The width that a canvas has available.

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

// Of the canvas's parent, in px; followed as it changes. `deps` change when the canvas comes and goes.
export function useBoxWidth(canvas: RefObject<HTMLCanvasElement>, deps: readonly unknown[] = []): number {
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const read = () => setWidth(Math.max(200, box.clientWidth));
    read();
    const observer = new ResizeObserver(read);
    observer.observe(box);
    return () => observer.disconnect();
  }, deps);
  return width;
}
