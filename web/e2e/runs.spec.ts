// The list of runs, and the start page above a long one.
import type { Browser, Page, Request } from "@playwright/test";
import { waitingRun } from "./routes";
import { expect, Server, startRun, test, untilOver, visit, watch } from "./server";

/** A server with a thousand finished runs. */
async function thousand(page: Page): Promise<{ server: Server; run: string }> {
  const server = await Server.make();
  await visit(page, server);
  const run = await startRun(page, server, { rounds: 1 });
  await untilOver(page, server, run);
  server.copyRun(run, 999);
  return { server, run };
}

const isList = (request: Request) => new URL(request.url()).pathname === "/api/runs" && request.method() === "GET";

test("a thousand runs are searched, filtered, sorted and paged with one request each", async ({ page }) => {
  test.setTimeout(120_000);
  const { server, run } = await thousand(page);
  try {
    const trouble = watch(page);
    const asked: string[] = [];
    page.on("request", (request) => {
      if (new URL(request.url()).pathname.startsWith("/api/runs")) asked.push(request.url());
    });
    await page.goto(`${server.url}/runs`);
    await expect(page.locator("output")).toHaveText("1,000 runs");
    const rows = page.locator(".runtable tbody tr");
    await expect(rows).toHaveCount(50);
    await expect(rows.first()).toContainText("Helix Instruments");
    await expect(rows.first()).toContainText(/\d+ \/ 120/);
    expect(asked.length).toBe(1);

    await page.getByRole("button", { name: "Next" }).click();
    await expect(page.getByText("51–100 of 1,000")).toBeVisible();
    await expect(page).toHaveURL(/page=2/);
    await page.reload();
    await expect(page.getByText("51–100 of 1,000")).toBeVisible();

    // Another order is one of the whole list.
    if ((page.viewportSize()?.width ?? 0) > 1000) {
      await page.getByRole("button", { name: /Started/ }).click();
      await expect(page.getByRole("columnheader", { name: /Started/ })).toHaveAttribute("aria-sort", "ascending");
      await expect(rows.first().getByRole("link").first()).toHaveAttribute(
        "href",
        "/runs/00000000-0000-7000-8000-0000000003e7/results",
      );
    }
    const search = page.getByRole("searchbox", { name: "Search" });
    await search.fill(run);
    await expect(page.locator("output")).toHaveText("1 run");
    await expect(rows).toHaveCount(1);
    await search.fill("100% nothing");
    await expect(page.getByText("No results")).toBeVisible();
    await search.fill("hlxi");
    await expect(page.locator("output")).toHaveText("1,000 runs");
    await page.getByLabel("Status").selectOption("failed");
    await expect(page.getByText("No results")).toBeVisible();
    await page.getByLabel("Status").selectOption("");
    await page.getByLabel("Kind").selectOption("run");
    await expect(page.getByText("No results")).toBeVisible();
    await expect(page).toHaveURL(/q=hlxi&workflow=run/);
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("chosen runs are deleted after a second word, and a run is run again", async ({ page }) => {
  const server = await Server.make();
  try {
    await visit(page, server);
    const run = await startRun(page, server, { rounds: 3, moves: 2 });
    await untilOver(page, server, run);
    const paused = await waitingRun(page, server);
    await page.goto(`${server.url}/runs`);
    const row = (id: string) => page.locator(".runtable tbody tr").filter({ has: page.locator(`a[href*="${id}"]`) });
    await expect(row(paused)).toContainText("Needs you");
    // An unfinished run can still be resumed, and is not deleted.
    await row(paused).getByRole("checkbox").check();
    await expect(page.getByRole("button", { name: "Delete" })).toBeDisabled();
    await expect(page.getByText("Stop unfinished runs before you delete them.")).toBeVisible();
    await row(paused).getByRole("checkbox").uncheck();
    await row(run).getByRole("checkbox").check();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete 1 run permanently" }).click();
    await expect(row(run)).toHaveCount(0);
    expect((await page.request.get(`${server.url}/api/runs/${run}`)).status()).toBe(404);
    const refused = await page.request.post(`${server.url}/api/runs/${paused}/delete`, {
      headers: { origin: server.url },
    });
    expect(refused.status()).toBe(409);
    expect(await refused.json()).toMatchObject({ code: "run-not-over" });
    if ((page.viewportSize()?.width ?? 0) > 1200) {
      await row(paused)
        .getByRole("link", { name: /Run again/ })
        .click();
      await expect(page.getByRole("combobox", { name: "Ticker" })).toHaveValue("HLXI");
    }
  } finally {
    await server.remove();
  }
});

/** The first visit of a browser to the start page: what it loads, and how long until the ticker can be typed. */
async function firstVisit(browser: Browser, server: Server, viewport: { width: number; height: number } | null) {
  const page = await (await browser.newContext({ viewport })).newPage();
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  let bytes = 0;
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  const api: Request[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/api/")) api.push(request);
  });
  const began = Date.now();
  await page.goto(`${server.url}/`, { waitUntil: "commit" });
  await page.getByRole("combobox", { name: "Ticker" }).fill("HLXI");
  const usable = Date.now() - began;
  await expect(page.getByRole("link", { name: "All 1,000 runs" })).toBeVisible();
  await expect(page.locator("a.run")).toHaveCount(6);
  await expect(page.getByText(/model calls \(demo model\)/)).toBeVisible();
  await page.waitForLoadState("networkidle");
  await page.context().close();
  return { api, bytes, usable };
}

test("the start page above a thousand runs stays small and fast", async ({ page, browser }, info) => {
  test.setTimeout(180_000);
  const { server } = await thousand(page);
  try {
    const visits = [];
    // The best of several: other work on the machine makes a visit slower, never faster.
    let usable = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 3 || (i < 8 && usable > 1500); i += 1) {
      const visit = await firstVisit(browser, server, page.viewportSize());
      visits.push(visit);
      usable = Math.min(usable, visit.usable);
    }
    const bytes = Math.max(...visits.map((visit) => visit.bytes));
    const requests = Math.max(...visits.map((visit) => visit.api.length));
    process.stdout.write(
      `${info.project.name} start page, 1,000 runs: ${requests} requests, ${(bytes / 1000).toFixed(0)} kB, ticker usable after ${usable} ms\n`,
    );
    for (const { api } of visits) {
      expect(api.filter(isList).length).toBe(1);
      expect(api.length, api.map((request) => request.url()).join("\n")).toBeLessThanOrEqual(8);
    }
    expect(bytes).toBeLessThanOrEqual(260_000);
    expect(usable).toBeLessThanOrEqual(1500);
  } finally {
    await server.remove();
  }
});
