// Runs that do not end well: what a person sees, and what they can do about it.
import { sidewaysWidths } from "./routes";
import { expect, KEY, Provider, Server, startRun, test, viewOf, visit, watch } from "./server";

test("a consultation that cannot go on says why, and can be started again", async ({ page }) => {
  const provider = await Provider.make();
  const server = await Server.make("0", "without images", "none", provider.model);
  try {
    await visit(page, server);
    const trouble = watch(page);
    const run = await startRun(page, server, { source: "synthetic", isolation: "none" });
    await page.goto(`${server.url}/runs/${run}`);
    await expect(page.locator("[data-link=ended]")).toContainText("Failed");
    await expect(page.getByText("The run failed.")).toBeVisible();
    await expect(page.locator(".banner")).toContainText("no evidence could be made up");
    await expect(page.getByRole("button", { name: "Resume" })).toHaveCount(0);
    await expect(page.getByRole("button", { name: "Stop", exact: true })).toHaveCount(0);
    await page.getByRole("link", { name: "Start again" }).click();
    await expect(page.getByRole("combobox", { name: "Ticker" })).toHaveValue("HLXI");
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
    provider.stop();
  }
});

test("a key that is refused in the middle of a consultation is said so, and shown nowhere", async ({ page }) => {
  const provider = await Provider.make();
  // A reading without citations is asked for again.
  provider.text = "Revenue grows slowly and cash is plenty [F0:Revenue:FY2025].";
  provider.credit = 2;
  const server = await Server.make("0", "without images", "none", provider.model);
  try {
    await visit(page, server);
    const trouble = watch(page);
    const run = await startRun(page, server, { isolation: "none" });
    await page.goto(`${server.url}/runs/${run}?layer=1`);
    const banner = page.locator(".banner");
    await expect(banner).toContainText("The provider rejected the API key or the account.");
    await expect(banner).toContainText("incorrect API key provided: Bearer ***");
    // What was answered before is there.
    await expect(page.getByText("Revenue grows slowly and cash is plenty").first()).toBeVisible();
    expect(await page.content()).not.toContain(KEY);
    await banner.getByRole("link", { name: "Settings" }).click();
    await expect(page.getByRole("region", { name: "Keys" })).toContainText("openai");
    expect(await page.content()).not.toContain(KEY);
    for (const path of [run, `${run}/events.json?after=0`, `${run}/export.json`])
      expect(await (await fetch(`${server.url}/api/runs/${path}`)).text(), path).not.toContain(KEY);
    // With an account that is filled up it goes on; this model has no move to offer.
    provider.credit = Number.POSITIVE_INFINITY;
    await page.goto(`${server.url}/runs/${run}`);
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(banner).toContainText("The run ended without a recommendation.");
    await expect(page.locator("[data-link=ended]")).toBeVisible();
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
    provider.stop();
  }
});

test("a program that no model writes is a failed run with its reason, and is started again", async ({ page }, info) => {
  test.setTimeout(120_000);
  const provider = await Provider.make();
  provider.status = 400;
  const server = await Server.make("0", "with images", "none", provider.model);
  try {
    await visit(page, server);
    await page.goto(`${server.url}/tasks`);
    await page.getByRole("textbox", { name: "Task" }).fill("print 1");
    await page.getByRole("button", { name: "Start" }).click();
    await expect(page.getByText("The run failed.")).toBeVisible();
    await expect(page.locator("[data-link=ended]")).toContainText("Failed");
    // Nobody waits for a program that will not come.
    await expect(page.getByText("The first program is being written")).toHaveCount(0);
    const failed = page.url();
    provider.status = 200;
    provider.text = "```python\nprint(1)\n```";
    await page.getByRole("link", { name: "Start again" }).click();
    await expect(page.getByRole("textbox", { name: "Task" })).toHaveValue("print 1");
    await page.getByRole("button", { name: "Start" }).click();
    // A sandbox boots on an emulated CPU.
    await expect(page.locator("[data-link=ended]")).toContainText("Finished", { timeout: 60_000 });
    await expect(page.getByRole("region", { name: "Attempt 1" })).toContainText("exit 0");
    expect(page.url()).not.toBe(failed);
    if (info.project.name === "desktop") expect(await sidewaysWidths(page)).toEqual([]);
  } finally {
    await server.remove();
    provider.stop();
  }
});

test("a run that reached its limit goes on with a higher one", async ({ page }) => {
  const provider = await Provider.make();
  const server = await Server.make("0", "without images", "none", provider.model);
  try {
    await visit(page, server);
    const trouble = watch(page);
    const run = await startRun(page, server, { moves: 1, rounds: 1, isolation: "none", budget_usd: "0.0001" });
    await page.goto(`${server.url}/runs/${run}`);
    await expect(page.getByText("Spend limit reached.")).toBeVisible();
    await page.getByLabel("New limit").fill("9.50");
    await page.locator(".morebudget").getByRole("button", { name: "Resume" }).click();
    await expect(page.getByText("Spend limit reached.")).toHaveCount(0);
    await expect.poll(async () => (await viewOf(page, server, run)).about.cap_micro_usd).toBe(9_500_000);
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
    provider.stop();
  }
});
