// The example queries: those of docs/sql, which the docs show with their answers.

const files = import.meta.glob("../../../../docs/sql/*.sql", { query: "?raw", import: "default", eager: true });

const kTitles: [string, string][] = [
  ["time_by_op", "Which ops the GPU worked for"],
  ["own_time", "Where the host spends its time"],
  ["launch_delay", "How long kernels wait after their launch"],
  ["shapes", "Which shapes a matrix multiplication sees"],
  ["memory_peak", "Which op ran when most memory was allocated"],
];

export interface Example {
  title: string;
  query: string;
}

export const examples: Example[] = kTitles.flatMap(([name, title]) => {
  const path = Object.keys(files).find((each) => each.endsWith(`/${name}.sql`));
  return path ? [{ title, query: String(files[path]).trim() }] : [];
});
