// Everything that a model, a filing or a client writes is shown as text.
import type { Page } from "@playwright/test";
import type { DebateThread, ReportDocument, RunList } from "../src/gen/api";
import type { RunView } from "../src/gen/run";
import { expect, Server, test, visit, watch } from "./server";

const HTML = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script><b>bold</b>`;
const BIDI = "safe \u202Eevil\u202C \u2066hidden\u2069 \u200Bzero";
const ESCAPES = "\u001b[31mred\u001b[0m \u0007bell";
const HOSTILE = `${HTML} ${BIDI} ${ESCAPES} [F0:<script>:FY2025]`;
const SEEN = "safe \uFFFDevil\uFFFD \uFFFDhidden\uFFFD zero";

/** Puts the hostile words where a model's words stand in the server's answers. */
async function poison(page: Page): Promise<void> {
  const change = <T>(path: RegExp, edit: (body: T) => unknown) =>
    page.route(path, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: edit((await response.json()) as T) });
    });
  await change<RunView>(/\/api\/runs\/[^/]+$/, poisoned);
  await change<DebateThread>(/\/threads\//, (thread) => ({
    ...thread,
    turns: thread.turns.map((turn) => ({ ...turn, text: HOSTILE })),
  }));
  await change<ReportDocument>(/\/api\/runs\/[^/]+\/memo$/, (memo) => ({
    ...memo,
    title: HOSTILE,
    blocks: memo.blocks.map((block) =>
      block.block === "heading"
        ? { ...block, words: HOSTILE }
        : block.block === "paragraph"
          ? {
              ...block,
              words: [
                { span: "text", text: HOSTILE },
                { span: "cite", id: HOSTILE, url: null, listed: false },
              ],
            }
          : block,
    ),
  }));
  await change<RunList>(/\/api\/runs\?/, (list) => ({
    ...list,
    runs: list.runs.map((run) => ({
      ...run,
      title: HOSTILE,
      model: HOSTILE,
      consult: run.consult && {
        ...run.consult,
        company: HOSTILE,
        best: run.consult.best && { ...run.consult.best, title: HOSTILE },
      },
    })),
  }));
  await page.route(/\/artifacts\//, (route) =>
    route.fulfill({ body: `# ${HOSTILE}\n\n- ${HOSTILE}`, contentType: "text/markdown" }),
  );
}

function poisoned(view: RunView): RunView {
  const { consult } = view;
  if (!consult?.gathered) return view;
  return {
    ...view,
    about: { ...view.about, title: HOSTILE },
    consult: {
      ...consult,
      gathered: { ...consult.gathered, company: HOSTILE, notes: [HOSTILE] },
      agents: consult.agents.map((agent) => ({ ...agent, persona: HOSTILE })),
      moves: consult.moves.map((one) => ({
        ...one,
        title: HOSTILE,
        check: one.check && {
          ...one.check,
          findings: [{ rule: "x.y", severity: "warn", subject: "", message: HOSTILE }],
        },
        scored: one.scored && {
          ...one.scored,
          key_objection: one.scored.key_objection && { ...one.scored.key_objection, text: HOSTILE },
        },
      })),
    },
  };
}

async function isHarmless(page: Page): Promise<void> {
  await expect(page.locator("main")).toContainText("<img src=x onerror=");
  await expect(page.locator("main")).toContainText(SEEN);
  const raw = /[\p{Bidi_Control}\p{Cc}\u200b]/u;
  const texts = await page
    .locator("main *")
    .evaluateAll((all) =>
      all.map((one) =>
        [...one.childNodes].flatMap((node) => (node.nodeType === 3 ? [node.textContent ?? ""] : [])).join(""),
      ),
    );
  expect(texts.filter((text) => raw.test(text.replace(/[\n\t]/g, "")))).toEqual([]);
  expect(await page.title()).not.toBe("owned");
  expect(await page.locator("img").count()).toBe(0);
  expect(await page.evaluate(() => document.querySelectorAll("main script, main b > script").length)).toBe(0);
}

test("words of models are text on every screen", async ({ page, trouble, finished }) => {
  await poison(page);
  for (const place of ["?layer=0", "?layer=2", "?layer=3", "?layer=4", "?layer=all", "/results", "/memo"]) {
    await page.goto(`/runs/${finished}${place}`);
    await isHarmless(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), place).toBeLessThanOrEqual(0);
  }
  for (const list of ["/", "/runs"]) {
    await page.goto(list);
    await isHarmless(page);
  }
  await page.goto(`/runs/${finished}?layer=3&move=m1&thread=D1`);
  await expect(page.locator(".turn").first()).toContainText("<script>document.title='owned'</script>");
  await page.goto(`/runs/${finished}?doc=m1.md`);
  await expect(page.getByRole("dialog")).toContainText("<img src=x onerror=");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect(trouble).toEqual([]);
});

test("a task with markup in it is a title with text in it", async ({ page }) => {
  const server = await Server.make("0", "with images");
  try {
    await visit(page, server);
    const trouble = watch(page);
    await page.goto(`${server.url}/tasks`);
    await page.getByRole("textbox", { name: "Task" }).fill(`${HTML} print 1`);
    await page.getByRole("button", { name: "Start" }).click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText("<img src=x");
    await page.goto(`${server.url}/tasks`);
    await expect(page.locator(".run.task").first()).toContainText("<img src=x");
    expect(await page.locator("img").count()).toBe(0);
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});
