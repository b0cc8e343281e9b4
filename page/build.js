// Bundle the page into one script and one style sheet. Usage: node build.js [folder]

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../src/ibforecast/plots/explorer"));
const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8").trim();

mkdirSync(out, { recursive: true });
const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: { explorer: "src/main.js" },
  outdir: out,
  bundle: true,
  write: false,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  minify: true, // every report carries it; the sources are here to be read
  legalComments: "none", // the licence is the banner
  banner: { js: `/*! Contains uPlot. ${licence} */`, css: "/*! Contains the style of uPlot, MIT licence. */" },
});
for (const file of outputFiles) writeFileSync(file.path, file.contents);
for (const name of ["index.html", "icon.svg"]) copyFileSync(join(here, "src", name), join(out, name));
