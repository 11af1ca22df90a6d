// Two builds of one page. `vite build` writes dist/index.html with its assets, for the server and its strict CSP (no inline
// script). `vite build --mode report` writes dist/report.html: scripts and styles inside, and the place where
// `firelane report` puts the answers.

/// <reference types="vitest/config" />
import { defineConfig, type Plugin } from "vite";

const kAnswersPlace = "<!--firelane-answers-->";

// Moves the bundle's script and style into the page and names it report.html.
function oneFile(): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const text = (name: string) => {
        const item = bundle[name];
        return item.type === "chunk" ? item.code : String(item.source);
      };
      const page = Object.keys(bundle).find((name) => name.endsWith(".html"));
      if (!page) throw new Error("one-file: the bundle has no page");
      let html = text(page);
      for (const name of Object.keys(bundle)) {
        // Functions as replacements: a string's `$&` would be expanded. `</` would end the element early.
        if (name.endsWith(".js")) {
          const code = text(name).replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
          html = html.replace(/<script type="module"[^>]*><\/script>/, "");
          html = html.replace("</body>", () => `${kAnswersPlace}\n<script type="module">${code}</script>\n</body>`);
        } else if (name.endsWith(".css")) {
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${text(name)}</style>`);
        }
        delete bundle[name];
      }
      this.emitFile({ type: "asset", fileName: "report.html", source: html });
    },
  };
}

export default defineConfig(({ mode }) => ({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  plugins: mode === "report" ? [oneFile()] : [],
  build: {
    target: "es2022",
    modulePreload: false,
    // Pictures would need a `data:` exception in the CSP; the report has them inside.
    assetsInlineLimit: mode === "report" ? 1 << 20 : 0,
    cssCodeSplit: false,
    emptyOutDir: mode !== "report",
    rollupOptions: {
      output: {
        inlineDynamicImports: true,
        // The same names every time: the program's build depends on these files, and the server forbids caching anyway.
        entryFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
  // `FIRELANE=http://127.0.0.1:PORT npm run dev`: the page from here, reloading as files change, the data from a running
  // `firelane view --no-open`. Open it with that one's token: http://127.0.0.1:5173/?token=...
  server: {
    host: "127.0.0.1",
    proxy: process.env.FIRELANE
      ? { "/api": { target: process.env.FIRELANE, changeOrigin: true, headers: { Origin: process.env.FIRELANE } } }
      : undefined,
  },
  // No test waits for the clock; the limit is for machines that are busy with something else.
  // Tests call pure functions, so all files share one copy of the modules: loading them anew for each took four fifths of the time.
  test: { testTimeout: 300_000, environment: "node", pool: "threads", isolate: false, include: ["src/**/*.test.ts"] },
}));
