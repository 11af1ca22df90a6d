// Labels of facts as the page shows them.

// Items with an indented label belong to the item before them: "Step, not recorded 23 ms" and "  median of 10".
export function withDetails<T>(items: readonly T[], label: (item: T) => string): { item: T; details: T[] }[] {
  const out: { item: T; details: T[] }[] = [];
  for (const item of items) {
    if (label(item).startsWith(" ") && out.length > 0) out[out.length - 1].details.push(item);
    else out.push({ item, details: [] });
  }
  return out;
}
