import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** What each colour means; a token and its background share a meaning. */
const MEANINGS: Record<string, string[]> = {
  live: ["live", "liveline"],
  warning: ["warn", "warnbg"],
  bad: ["bad", "badbg"],
  good: ["good", "goodbg"],
  critic: ["c", "cbg"],
  D1: ["d1", "d1bg"],
  D2: ["d2", "d2bg"],
  D3: ["d3", "d3bg"],
};
const meaningOf = new Map(
  Object.entries(MEANINGS).flatMap(([name, tokens]) => tokens.map((one) => [one, name] as const)),
);

const source = join(import.meta.dirname, "..");
const sheets = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".css"));
const read = (file: string) => readFileSync(join(source, file), "utf8").replaceAll(/\/\*.*?\*\//gs, "");

it("no two meanings have the same colour", () => {
  const themes = [...read("styles/tokens.css").matchAll(/\[data-theme="(\w+)"\] \{([^}]*)\}/g)];
  expect(themes.map(([, name]) => name)).toEqual(["light", "dark"]);
  for (const [, name, rules = ""] of themes) {
    const colours = [...rules.matchAll(/--(\w+): (#\w+);/g)].filter(([, token = ""]) => meaningOf.has(token));
    expect(colours).toHaveLength(meaningOf.size);
    const values = colours.map(([, , value]) => value);
    expect(new Set(values).size, name).toBe(values.length);
  }
});

it("a rule has the colours of one meaning", () => {
  const mixed = sheets.flatMap((file) =>
    [...read(file).matchAll(/([^{};]+)\{([^{}]*)\}/g)].flatMap(([, selector = "", body = ""]) => {
      const found = [...body.matchAll(/var\(--(\w+)/g)].flatMap(([, token = ""]) => meaningOf.get(token) ?? []);
      return new Set(found).size > 1 ? [`${file}: ${selector.trim()}: ${found.join(", ")}`] : [];
    }),
  );
  expect(mixed).toEqual([]);
});

// The colour of the critic also marked scores that differ much.
it("a rule with the colour of a member is about that member", () => {
  const others = sheets.flatMap((file) =>
    [...read(file).matchAll(/([^{};]+)\{([^{}]*)\}/g)].flatMap(([, selector = "", body = ""]) => {
      const members = [...body.matchAll(/var\(--(c|d[123])(?:bg)?\)/g)].map(([, token = ""]) => token.toUpperCase());
      return members.filter((one) => !selector.includes(`.${one}`)).map((one) => `${file}: ${selector.trim()}: ${one}`);
    }),
  );
  const drawn = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
    // It maps members to their colours.
    (file) => file.endsWith(".tsx") && file !== join("viz", "range-plot.tsx"),
  );
  expect(drawn.length).toBeGreaterThan(50);
  expect(drawn.filter((file) => /var\(--(c|d[123])(bg)?\)/.test(readFileSync(join(source, file), "utf8")))).toEqual([]);
  expect(others).toEqual([]);
});
