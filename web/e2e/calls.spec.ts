// The call log: filters in the address, sums that equal the bill, prompts and answers, live runs, and speed.
import type { Page } from "@playwright/test";
import type { CallPage } from "../src/gen/api";
import { expect, Provider, Server, startRun, test, untilOver, viewOf, visit, watch } from "./server";

const rows = (page: Page) => page.locator(".callrows .callrow");

async function logOf(page: Page, server: Server, run: string, query = ""): Promise<CallPage> {
  return (
    await page.request.get(`${server.url}/api/runs/${run}/calls?limit=5000&${query}`)
  ).json() as Promise<CallPage>;
}

test("numbers of a run open its calls, which are filtered by the address", async ({
  page,
  trouble,
  finished,
  server,
}) => {
  const { all } = await logOf(page, server, finished);
  const view = await viewOf(page, server, finished);
  expect(all.total.calls).toBe(view.usage.calls + view.usage.extra_calls);
  await page.goto(`/runs/${finished}`);
  await page.locator(".meter a.v").nth(1).click();
  await expect(page).toHaveURL(`/runs/${finished}/calls`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Model calls");
  await expect(page.locator(".calltotal")).toContainText(`${all.total.calls.toLocaleString("en")} calls`);
  await expect(rows(page).first()).toBeVisible();

  await page.getByLabel("Move", { exact: true }).selectOption("m7");
  await expect(page).toHaveURL(/move=m7/);
  await page.getByLabel("Role", { exact: true }).selectOption("critic");
  const some = await logOf(page, server, finished, "role=critic&move=m7");
  await expect(page.locator(".calltotal")).toContainText(`${some.matching.total.calls} of ${all.total.calls}`);
  await expect(rows(page)).toHaveCount(some.calls.length);
  await expect(rows(page).first().locator(".callname")).toHaveText("m7/round-1/critic");
  await page.reload();
  await expect(rows(page)).toHaveCount(some.calls.length);

  await page.getByLabel("Text in name, reason or answer").fill("no answer says this");
  await expect(page.getByText("No call matches the filters")).toBeVisible();
  await page.getByRole("button", { name: "Clear filters" }).first().click();
  await expect(page.locator(".calltotal")).toContainText(`${all.total.calls.toLocaleString("en")} calls`);
  await expect(page).toHaveURL(`/runs/${finished}/calls`);
  expect(trouble).toEqual([]);
});

test("a call opens with its prompt and answer, by mouse and by keyboard", async ({ page, trouble, finished }) => {
  const phone = (page.viewportSize()?.width ?? 0) < 720;
  await page.goto(`/runs/${finished}/calls?move=m2&role=D1`);
  await rows(page).first().click();
  await expect(page).toHaveURL(/call=m2%2Fround-1%2FD1/);
  const detail = page.locator(".calldetail");
  await expect(detail).toContainText("Tokens in");
  await expect(detail.getByRole("heading", { name: "Answer" })).toBeVisible();
  await expect(detail.locator("details[open]")).toHaveCount(1);
  await expect(detail.locator("pre").first()).toContainText("stance");
  await detail.locator("summary").first().click();
  await expect(detail.locator("details").first()).toHaveAttribute("open", "");
  await page.keyboard.press("Escape");
  await expect(page).not.toHaveURL(/call=/);
  if (!phone) {
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await expect(page).toHaveURL(/call=m2%2Fround-2%2FD1/);
    await rows(page).nth(1).locator(".callname").focus();
    await page.keyboard.press("ArrowDown");
    await expect(page).toHaveURL(/call=m2%2Fround-3%2FD1/);
    await expect(rows(page).nth(2).locator(".callname")).toBeFocused();
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(wide).toBeLessThanOrEqual(0);
  expect(trouble).toEqual([]);
});

test("sums by role, move and model equal the bill to the micro-dollar", async ({ page }) => {
  const provider = await Provider.make();
  provider.text = "The company makes instruments.";
  const server = await Server.make("0", "without images", "none", provider.model);
  try {
    await visit(page, server);
    const trouble = watch(page);
    const run = await startRun(page, server, { moves: 2, rounds: 1, budget_usd: "5.00" });
    await expect
      .poll(async () => (await viewOf(page, server, run)).status.state, { timeout: 45_000 })
      .not.toBe("running");
    const bill = (await viewOf(page, server, run)).usage.cost_micro_usd;
    expect(bill).toBeGreaterThan(0);
    await page.goto(`${server.url}/runs/${run}/calls`);
    const box = page.locator("details.callsumbox");
    if (!(await box.evaluate((element) => (element as HTMLDetailsElement).open))) await box.locator("summary").click();
    for (const title of ["By role", "By move", "By model"]) {
      const costs = await page.getByRole("table", { name: title }).locator("tbody td:last-child").allTextContents();
      const micro = costs.map((cost) => Math.round(Number(cost.replace("$", "")) * 1e6));
      expect(
        micro.reduce((sum, one) => sum + one, 0),
        `${title}: ${costs.join(" ")}`,
      ).toBe(bill);
    }
    // Answers that do not match the schema are rejected, with the reason.
    await page.getByRole("button", { name: "analysts" }).click();
    await expect(page).toHaveURL(/role=analysts/);
    await page.goto(`${server.url}/runs/${run}/calls?result=rejected`);
    await rows(page).first().click();
    await expect(page.locator(".callresult")).toContainText("rejected");
    await expect(page.locator(".calldetail")).not.toContainText("sk-nobody");
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
    provider.stop();
  }
});

test("calls of a run in progress appear as they finish", async ({ page }) => {
  const server = await Server.make("0.3");
  try {
    await visit(page, server);
    const trouble = watch(page);
    const run = await startRun(page, server, { moves: 3, rounds: 3 });
    await page.goto(`${server.url}/runs/${run}/calls`);
    await expect(page.getByText("Live")).toBeVisible();
    const shown = async () =>
      Number(/^([0-9,]+)/.exec((await page.locator(".calltotal").textContent()) ?? "")?.[1] ?? 0);
    await expect.poll(shown).toBeGreaterThan(3);
    const before = await shown();
    await expect.poll(shown).toBeGreaterThan(before);
    await untilOver(page, server, run);
    const { all } = await logOf(page, server, run);
    await expect.poll(shown).toBe(all.total.calls);
    await expect(page.getByText("Live")).toBeHidden();
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("a run without calls says so", async ({ page, trouble, server }) => {
  const run = await startRun(page, server, { moves: 1, rounds: 1 });
  await page.route(/\/calls\?/, async (route) => {
    const response = await route.fetch();
    const log = (await response.json()) as CallPage;
    const none = { ...log.all, total: { ...log.all.total, calls: 0 }, roles: [], moves: [], models: [], members: [] };
    await route.fulfill({ response, json: { ...log, calls: [], next: undefined, matching: none, all: none } });
  });
  await page.goto(`/runs/${run}/calls`);
  await expect(page.getByText(/No calls yet|This run made no calls/)).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.goto("/runs/00000000-0000-7000-8000-000000000000/calls");
  await expect(page.getByText("Run not found")).toBeVisible();
  expect(trouble.filter((one) => !/status of 404/.test(one))).toEqual([]);
});

/** The best of several measurements: other work on the machine makes a measurement slower, never faster. */
async function best(times: number, measure: () => Promise<number>): Promise<number> {
  let found = Number.POSITIVE_INFINITY;
  for (let i = 0; i < times; i++) found = Math.min(found, await measure());
  return found;
}

test("a run of 925 calls opens within 300 ms", async ({ page, server }, info) => {
  test.skip(info.project.name !== "desktop", "the speed does not depend on the viewport");
  test.setTimeout(240_000);
  const run = await startRun(page, server, { moves: 15, rounds: 10 });
  await untilOver(page, server, run, 180_000);
  const { all } = await logOf(page, server, run);
  expect(all.total.calls).toBeGreaterThanOrEqual(925);
  const open = async () => {
    await page.goto(`/runs/${run}`);
    await expect(page.locator(".meter a.v").first()).toBeVisible();
    // From the click to the frame after the first row, in the page's own time.
    return page.evaluate(async () => {
      const link = document.querySelectorAll<HTMLElement>(".meter a.v")[1];
      const began = performance.now();
      link?.click();
      while (!document.querySelector(".callrows .callrow")) await new Promise(requestAnimationFrame);
      await new Promise(requestAnimationFrame);
      return performance.now() - began;
    });
  };
  const took = await best(5, open);
  process.stdout.write(`${all.total.calls} calls open in ${Math.round(took)} ms\n`);
  expect(took).toBeLessThanOrEqual(300);
});

test("20,000 calls scroll smoothly", async ({ page, trouble, finished }, info) => {
  test.skip(info.project.name !== "desktop", "the speed does not depend on the viewport");
  test.setTimeout(120_000);
  // Real rows, repeated: the server sends pages of the same form.
  const TOTAL = 20_000;
  await page.route(/\/calls\?/, async (route) => {
    const url = new URL(route.request().url());
    const [after, limit] = [Number(url.searchParams.get("after")), Number(url.searchParams.get("limit"))];
    url.search = "?limit=200";
    const log = (await (await route.fetch({ url: url.href })).json()) as CallPage;
    const calls = Array.from({ length: Math.min(limit, TOTAL - after) }, (_, i) => {
      const seq = after + i + 1;
      const call = log.calls[seq % log.calls.length] as CallPage["calls"][number];
      const [started_at_ms, length_ms] = [call.started_at_ms + seq * 100, 400 + (seq % 7) * 300];
      return { ...call, seq, call: `${call.call}/x-${seq}`, started_at_ms, length_ms };
    });
    const next = after + calls.length < TOTAL ? after + calls.length : undefined;
    const total = { ...log.all.total, calls: TOTAL };
    const sums = { ...log.all, total };
    await route.fulfill({ json: { ...log, calls, next, matching: sums, all: sums } });
  });
  await page.goto(`/runs/${finished}/calls`);
  await expect(page.locator("[role=table][aria-label=Calls]")).toHaveAttribute("aria-rowcount", String(TOTAL + 1));
  // 200 frames, each scrolled by 15 rows; frames and long tasks as the browser counts them.
  const scroll = () =>
    page.evaluate(async () => {
      const long: number[] = [];
      const watch = new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration)));
      watch.observe({ type: "longtask" });
      scrollTo(0, 0);
      await new Promise((done) => setTimeout(done, 300));
      const began = performance.now();
      let most = 0;
      for (let i = 0; i < 200; i++) {
        scrollBy(0, 480);
        await new Promise(requestAnimationFrame);
        most = Math.max(most, document.querySelectorAll(".callrows .callrow").length);
      }
      const frames = (200 / (performance.now() - began)) * 1000;
      await new Promise((done) => setTimeout(done, 100));
      watch.disconnect();
      return { frames, longest: Math.max(0, ...long), most };
    });
  let [frames, longest, most] = [0, Number.POSITIVE_INFINITY, 0];
  for (let i = 0; i < 5 && frames < 50; i++) {
    const found = await scroll();
    frames = Math.max(frames, found.frames);
    longest = Math.min(longest, found.longest);
    most = Math.max(most, found.most);
  }
  process.stdout.write(
    `20,000 calls: ${Math.round(frames)} frames/s, longest task ${Math.round(longest)} ms, at most ${most} rows in the document\n`,
  );
  expect(most).toBeLessThan(120);
  expect(frames >= 50 || longest <= 50, `${frames} frames/s, longest task ${longest} ms`).toBe(true);
  // The end of the list is reached, and the last call can be opened.
  await page.keyboard.press("End");
  await expect(rows(page).last()).toHaveAttribute("aria-rowindex", String(TOTAL + 1));
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect(trouble).toEqual([]);
});
