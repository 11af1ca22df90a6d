// Which folder of src may import which. Run by `npm run lint`.
//
//   data <- text, page <- parts <- panes/* <- panes/index.ts <- app <- main.tsx
//
// Type-only imports count. Tests follow the same rules.

const kLayers = [
  ["data", "^src/data/"],
  ["text", "^src/(data|text)/"],
  ["page", "^src/(data|text|page)/"],
  ["parts", "^src/(data|text|page|parts)/"],
  ["panes/[^/]+", "^src/(data|text|page|parts|panes/[^/]+)/"],
];

module.exports = {
  forbidden: [
    ...kLayers.map(([folder, allowed]) => ({
      name: `layer of src/${folder}`,
      severity: "error",
      from: { path: `^src/${folder}/` },
      to: { path: "^src/", pathNot: allowed },
    })),
    {
      name: "panes do not import each other",
      comment: "What two panes share belongs in src/parts.",
      severity: "error",
      from: { path: "^src/panes/([^/]+)/" },
      to: { path: "^src/panes/", pathNot: "^src/panes/$1/" },
    },
    {
      name: "no cycles between folders",
      severity: "error",
      scope: "folder",
      from: {},
      to: { circular: true },
    },
    {
      name: "no cycles between files",
      severity: "error",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "styles stand beside their component",
      severity: "error",
      from: { path: "^src/(.+)/[^/]+$" },
      to: { path: "^src/.+\\.css$", pathNot: "^src/$1/[^/]+$" },
    },
    {
      name: "everything is reachable from main.tsx",
      comment: "A pane that panes/index.ts does not list, or a file that nothing uses any more.",
      severity: "error",
      from: { path: "^src/main\\.tsx$" },
      to: { path: "^src/", pathNot: "\\.test\\.ts$|^src/data/tile_builder\\.ts$", reachable: false },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { extensions: [".ts", ".tsx", ".css"] },
  },
};
