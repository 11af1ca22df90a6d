// snake_case to lowerCamel, once, at the edge. Keys that are data rather than fields stay as they are: what the source said
// about a slice (`args`) and names of memory categories.

const kDataObjects = new Set(["args", "categories"]);

function camel(key: string): string {
  return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

export function camelKeys(value: unknown): unknown {
  if (Array.isArray(value)) {
    // Columns of numbers are long and hold nothing to rename.
    return value.length > 0 && (value[0] === null || typeof value[0] !== "object") ? value : value.map(camelKeys);
  }
  if (value === null || typeof value !== "object") return value;
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    out[camel(key)] = kDataObjects.has(key) ? inner : camelKeys(inner);
  }
  return out;
}
