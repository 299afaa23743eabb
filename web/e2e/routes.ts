// Every page of the web UI, and what tests measure on all of them.
import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import type { RunView } from "../src/gen/run";
import { expect, type Server, startRun, viewOf } from "./server";

/** Runs that only the page has: making them takes a provider or a sandbox. */
const FAILED = "00000000-0000-7000-8000-00000000c0d1";
const PROGRAM = "00000000-0000-7000-8000-00000000c0d2";

const allRoutes = (run: string, waiting: string, draft: string) => [
  "/",
  "/runs",
  "/runs?q=nothing-is-called-that",
  "/tasks",
  "/settings",
  "/compare",
  "/drafts",
  "/drafts?show=all",
  `/drafts/${draft}`,
  "/audit",
  "/nowhere",
  ...[0, 1, 2, 3, 4].map((layer) => `/runs/${run}?layer=${layer}`),
  `/runs/${run}?layer=all`,
  `/runs/${run}?layer=3&move=m2&thread=D2`,
  `/runs/${run}?layer=0&fact=${encodeURIComponent("F0:Revenue:FY2025")}`,
  `/runs/${run}?doc=m1.md`,
  `/runs/${run}/results`,
  `/runs/${run}/calls`,
  `/runs/${run}/calls?move=m2&call=${encodeURIComponent("m2/round-1/D1")}`,
  `/runs/${run}/memo`,
  `/compare?a=${run}&b=${run}`,
  "/runs/00000000-0000-7000-8000-000000000000",
  `/runs/${waiting}`,
  `/runs/${FAILED}`,
  `/runs/${PROGRAM}`,
];

const failedView = JSON.parse(
  readFileSync(new URL("../fixtures/failed-view.json", import.meta.url), "utf8"),
) as RunView;
const ran = {
  exit: { exit: "exited", code: 1 },
  engine: "qemu",
  class: "hardware-vm",
  stdout_bytes: 0,
  stderr_bytes: 40,
  files: {},
} as const;
const programView: RunView = {
  ...failedView,
  about: { ...failedView.about, workflow: "run", title: "Print the sum of data.csv" },
  status: { state: "complete", verdict: "fail" },
  consult: null,
  code: {
    of: 3,
    attempts: [
      {
        attempt: 1,
        rejected: ["the answer has no `python` program"],
        program: {
          effect_id: "attempt-1/write",
          code_sha256: "0".repeat(64),
          code_lines: 12,
          dependencies: [],
          confidence_permille: 700,
        },
        executed: ran,
        checked: null,
        findings: [{ rule: "EXIT", severity: "block", subject: "main.py", message: "the program exited with 1" }],
        verdict: "fail",
        critique: "The file has a header, which the program reads as a number.",
      },
    ],
  },
};

/** Servers that have a draft already: tests of one worker share a server. */
const prepared = new WeakMap<Server, Promise<string[]>>();

/** All pages of a server, with runs in every state and a draft that needs review. */
export async function prepareRoutes(page: Page, server: Server, run: string): Promise<string[]> {
  for (const [id, view] of [
    [FAILED, failedView],
    [PROGRAM, programView],
  ] as const)
    await page.route(`**/api/runs/${id}`, (route) =>
      route.fulfill({ json: { ...view, about: { ...view.about, run_id: id } } }),
    );
  const routes = prepared.get(server) ?? prepare(page, server, run);
  prepared.set(server, routes);
  return routes;
}

async function prepare(page: Page, server: Server, run: string): Promise<string[]> {
  server.write("Makefile", "all:\n\techo one\n");
  const draft = server.draft("Makefile", "all: build\n\techo two /tmp/x\n");
  return allRoutes(run, await waitingRun(page, server), draft);
}

/** A run that has paused after its moves. */
export async function waitingRun(page: Page, server: Server, more: Record<string, unknown> = {}): Promise<string> {
  const run = await startRun(page, server, { moves: 2, pause_after_moves: true, ...more });
  await expect.poll(async () => (await viewOf(page, server, run)).status.state).toBe("paused");
  return run;
}

export async function isLoaded(page: Page): Promise<void> {
  await expect(page.locator("h1")).toBeVisible();
  await expect(page.locator(".loading, .sk")).toHaveCount(0);
  // Until then, text can be wider than in its own typeface.
  await page.evaluate(() => document.fonts.ready);
}

/** The widths at which the open page scrolls sideways. 720 is also a window of 1440 at 200 % zoom. */
export async function sidewaysWidths(page: Page): Promise<string[]> {
  const size = page.viewportSize();
  const found: string[] = [];
  for (const width of [1280, 1024, 800, 760, 720, 600, 390, 360, 320]) {
    await page.setViewportSize({ width, height: 900 });
    const measure = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    let wide = await measure();
    if (wide > 0) {
      // The page is drawn for the new width in one of the next frames.
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      wide = await measure();
    }
    if (wide > 0) found.push(`${wide} px too wide at ${width}`);
  }
  if (size) await page.setViewportSize(size);
  return found;
}

/** What on the open page is too small for a finger. Citations are within text and may be smaller. */
export function tooSmall(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const targets =
      ".btn, .seg button, select, summary, .nav a, .find, .stg, .lane, .zoombar nav button, .filter, input, textarea, " +
      "body > main button, [role=tab], [role=option], .callsums button, .cite:is(a, button)";
    return [...document.querySelectorAll<HTMLElement>(targets)].flatMap((one) => {
      // A field with a frame is pressed anywhere in it, and a checkbox on its label.
      const frame = one.closest(one.matches("[type=checkbox]") ? "label" : ".money, .companyfield");
      const { width, height } = (frame ?? one).getBoundingClientRect();
      const isSmall = height > 0 && height < (one.matches(".cite") ? 24 : 40);
      return isSmall && one.checkVisibility() ? [`${one.className} "${one.textContent}" ${width}x${height}`] : [];
    });
  });
}

/** Texts with backticks that are not shown as code. Prompts and answers are shown as they are. */
export function rawBackticks(page: Page): Promise<string[]> {
  return page.locator("main").evaluate((main) => {
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    const texts: string[] = [];
    while (walker.nextNode()) {
      const { textContent, parentElement } = walker.currentNode;
      if (textContent?.includes("`") && !parentElement?.closest("pre")) texts.push(textContent);
    }
    return texts;
  });
}

/** Labels that are cut without a way to read them, and marks outside of their chart. */
export function cutLabels(page: Page, onPhone: boolean): Promise<string[]> {
  return page.locator("main").evaluate((main, phone) => {
    const isCut = (one: Element) => {
      const { textOverflow, overflowX } = getComputedStyle(one);
      return textOverflow === "ellipsis" && overflowX !== "visible" && one.scrollWidth > one.clientWidth;
    };
    const isReadable = (one: Element) => {
      // A tap on a row of the call log opens the call with all its texts.
      if (phone) return one.closest(".callrow") !== null;
      const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const text = walker.currentNode.textContent?.trim() ?? "";
        const title = walker.currentNode.parentElement?.closest("[title]")?.getAttribute("title");
        if (text !== "" && !title?.includes(text)) return false;
      }
      return true;
    };
    const labels = [...main.querySelectorAll("*")].filter((one) => isCut(one) && !isReadable(one));
    const marks = [...main.querySelectorAll("svg text")].filter((one) => {
      const inside = one.getBoundingClientRect();
      const chart = one.closest("svg")?.getBoundingClientRect() ?? new DOMRect();
      return inside.left < chart.left - 1 || inside.right > chart.right + 1;
    });
    return [...labels, ...marks].map((one) => `${one.getAttribute("class")} "${one.textContent}"`);
  }, onPhone);
}
