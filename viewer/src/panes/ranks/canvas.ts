// A canvas at the resolution of the screen: sizes are in CSS px.

export function scaledContext(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const ctx = canvas.getContext("2d")!;
  ctx.scale(scale, scale);
  ctx.font = "11.5px system-ui, sans-serif";
  ctx.textBaseline = "middle";
  return ctx;
}
