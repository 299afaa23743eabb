// After `vite build`: checks the byte budgets and compresses every file.
//
// A budget is about what travels: the JavaScript of a page is its own chunk and all that this one imports.
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

interface Chunk {
  file: string;
  imports?: string[];
  dynamicImports?: string[];
  css?: string[];
}

const dist = directory();
const KB = 1000;

const manifestPath = join(dist, "manifest.json");
const manifest = JSON.parse(readFileSync(manifestPath, "utf8")) as Record<string, Chunk>;
rmSync(manifestPath);

const files = list(dist);
const gz = new Map<string, number>();
for (const file of files) {
  const bytes = readFileSync(join(dist, file));
  if (file.endsWith(".woff2")) continue;
  const zipped = gzipSync(bytes, { level: 9 });
  gz.set(file, zipped.length);
  writeFileSync(join(dist, `${file}.gz`), zipped);
  writeFileSync(
    join(dist, `${file}.br`),
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
  );
}

const sum = (names: Iterable<string>) => [...names].reduce((bytes, name) => bytes + (gz.get(name) ?? 0), 0);
const size = (names: string[]) => names.reduce((bytes, name) => bytes + statSync(join(dist, name)).size, 0);
const page = (entry: string) => sum(reach(["index.html", entry]));
const styles = (entry: string) => sum(new Set(chunks(["index.html", entry]).flatMap((chunk) => chunk.css ?? [])));
const fonts = () => size(files.filter((file) => file.endsWith(".woff2")));
/** Everything that the first visit of a page loads. */
const firstLoad = (entry: string) =>
  page(entry) + sum(["index.html", ...(manifest["index.html"]?.css ?? [])]) + fonts();
const embedded = size(list(dist));

const budgets: [string, number, number][] = [
  ["JavaScript of /", page("src/routes/home.tsx"), 110 * KB],
  ["JavaScript of a run", page("src/routes/run.tsx"), 150 * KB],
  ["JavaScript of calls", page("src/routes/calls.tsx"), 150 * KB],
  ["CSS of every page", sum(manifest["index.html"]?.css ?? []), 13 * KB],
  ["CSS of calls", styles("src/routes/calls.tsx"), 16 * KB],
  ["first load of /", firstLoad("src/routes/home.tsx"), 220 * KB],
  ["fonts", fonts(), 75 * KB],
  ["all that is embedded", embedded, 1200 * KB],
];
let over = false;
for (const [what, bytes, most] of budgets) {
  const verdict = bytes > most ? "TOO MUCH" : "ok";
  over ||= bytes > most;
  process.stdout.write(`${what.padEnd(22)} ${kb(bytes)} of ${kb(most)} kB  ${verdict}\n`);
}
const foreign = files.filter((file) => /\.(js|css|html)$/.test(file)).flatMap(foreignAddresses);
for (const found of foreign) process.stdout.write(`loads from elsewhere: ${found}\n`);
process.exitCode = over || foreign.length > 0 ? 1 : 0;

function directory(): string {
  const given = process.argv[2];
  if (given === undefined) throw new Error("usage: finish.ts DIRECTORY");
  return given;
}

/** The files of chunks and of everything that must be there before they run. */
function reach(entries: string[]): Set<string> {
  return new Set(chunks(entries).map((chunk) => chunk.file));
}

function chunks(entries: string[]): Chunk[] {
  const found = new Map<string, Chunk>();
  const visit = (name: string) => {
    const chunk = manifest[name];
    if (!chunk) throw new Error(`the build has no ${name}`);
    if (found.has(chunk.file)) return;
    found.set(chunk.file, chunk);
    chunk.imports?.forEach(visit);
  };
  entries.forEach(visit);
  return [...found.values()];
}

function list(folder: string, below = ""): string[] {
  return readdirSync(join(folder, below), { withFileTypes: true })
    .flatMap((entry) => {
      const path = below ? `${below}/${entry.name}` : entry.name;
      return entry.isDirectory() ? list(folder, path) : [path];
    })
    .sort();
}

/** Scripts, styles and imports of other hosts. Addresses that are only shown or are names of formats are fine. */
function foreignAddresses(file: string): string[] {
  const text = readFileSync(join(dist, file), "utf8");
  const loads =
    /(?:src|href)=["'](?:https?:)?\/\/[^"']+|@import\s+["']?(?:https?:)?\/\/[^"')]+|url\(["']?(?:https?:)?\/\/[^"')]+/g;
  return [...text.matchAll(loads)].map((match) => `${file}: ${match[0].slice(0, 80)}`);
}

function kb(bytes: number): string {
  return (bytes / KB).toFixed(1).padStart(6);
}
