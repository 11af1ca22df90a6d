// The example queries of docs/sql, which docs/sql.md shows with their results.

const files = import.meta.glob("../../../../docs/sql/*.sql", { query: "?raw", import: "default", eager: true });

const kTitles: [string, string][] = [
  ["time_by_op", "GPU time by operator"],
  ["own_time", "Host self time by operator"],
  ["launch_delay", "How long kernels wait after their launch"],
  ["shapes", "Input shapes of matrix multiplications"],
  ["memory_peak", "Which operator ran at the memory peak"],
];

export interface Example {
  title: string;
  query: string;
}

export const examples: Example[] = kTitles.flatMap(([name, title]) => {
  const path = Object.keys(files).find((each) => each.endsWith(`/${name}.sql`));
  return path ? [{ title, query: String(files[path]).trim() }] : [];
});
