import { readFileSync } from "node:fs";
import { expect, startRun, test, untilOver } from "./server";

test("a whole consultation, from the ticker to the exported memo", async ({ page, trouble }) => {
  test.setTimeout(180_000);
  await page.goto("/");
  const ticker = page.getByRole("combobox", { name: "Ticker" });
  await ticker.fill("hlxi");
  await expect(page.getByText("Helix Instruments, Inc.", { exact: true }).first()).toBeVisible();
  await expect(page.getByText(/Newest filing 10-Q/)).toBeVisible();
  await page.getByRole("button", { name: "3", exact: true }).click();
  await expect(page.getByText(/model calls \(demo model\)/)).toBeVisible();
  await expect(page.getByText(/^each move debated once: \d+ calls$/)).toBeVisible();
  await page.getByRole("button", { name: "Start run" }).click();

  await expect(page).toHaveURL(/\/runs\/[0-9a-f-]{36}/);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Helix Instruments");
  await expect(page.locator("[data-link=ended]")).toBeVisible({ timeout: 120_000 });
  await expect(page.locator("[data-move]")).toHaveCount(15);

  await page.getByRole("link", { name: "Results", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Recommended moves for Helix Instruments, Inc.");
  // The panel that every run has unless it is turned off.
  const panel = page.getByRole("region", { name: "Verdict of the panel" });
  await expect(panel.getByRole("heading", { level: 2 })).toContainText(/lead/);
  await expect(panel).toContainText("5 of 5 controls caught");
  const cards = page.locator(".card");
  await expect(cards).toHaveCount(3);
  await expect(page.locator("a.orow")).toHaveCount(12);
  const best = (await cards.first().getByRole("heading").textContent()) ?? "";

  const downloads: Record<string, string> = {};
  for (const [name, ending] of [
    ["Markdown", "md"],
    ["CSV", "csv"],
    ["JSON", "json"],
    ["PDF", "pdf"],
  ] as const) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name, exact: true }).click(),
    ]);
    downloads[ending] = readFileSync(await download.path(), "latin1");
  }
  expect(downloads["md"]?.includes(best)).toBe(true);
  expect(downloads["csv"]?.split("\n").length).toBeGreaterThan(15 * 3 * 4);
  expect(JSON.parse(downloads["json"] ?? "").company_ticker).toBe("HLXI");
  expect(downloads["pdf"]?.slice(0, 5)).toBe("%PDF-");
  expect(trouble).toEqual([]);
});

test("evidence of a debate opens as the fact with its filing", async ({ page, trouble, finished }) => {
  await page.goto(`/runs/${finished}?layer=3&move=m2&thread=D2`);
  const turn = page.locator(".turn").filter({ hasText: "Operational Pragmatist" }).first();
  await turn.locator("button.cite").first().click();
  // On a phone the debate is a dialog itself.
  const sheet = page.getByRole("dialog").filter({ hasText: "Cited as" });
  await expect(sheet.last()).toBeVisible();
  // The measure has a name, such as "Operating cash flow FY2025".
  await expect(sheet.last().getByRole("heading").first()).toHaveText(/^[A-Z][a-z ]+ (FY|Q)\d/);
  await expect(page).toHaveURL(/fact=F0/);
  await page.keyboard.press("Escape");
  await expect(page).not.toHaveURL(/fact=/);
  expect(trouble).toEqual([]);
});

test("every layer can be looked into", async ({ page, trouble, finished }) => {
  await page.goto(`/runs/${finished}?layer=0`);
  await expect(page.getByRole("row", { name: /^Revenue [^g]/ })).toBeVisible();
  await expect(page.getByRole("row", { name: /^Operating cash flow / })).toBeVisible();
  await page.getByRole("button", { name: /^Infer/ }).click();
  await expect(page.getByRole("heading", { name: /F1 Financial inference/ })).toBeVisible();
  await page.getByRole("button", { name: /^Analyze/ }).click();
  await expect(page.getByRole("region", { name: "Risk Officer" }).getByRole("listitem")).toHaveCount(3);
  await page.getByRole("button", { name: /^Rank/ }).click();
  await expect(page.locator(".rline")).toHaveCount(15);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await expect(page.locator(".oline")).toHaveCount(5);
  expect(trouble).toEqual([]);
});

test("a link shows the same to somebody else", async ({ page, trouble, finished }) => {
  const address = `/runs/${finished}?layer=3&move=m4&thread=D3`;
  await page.goto(address);
  await expect(page.getByRole("tab", { selected: true })).toContainText("Stakeholders");
  await expect(page.locator(".dhd")).toContainText("m4");
  await page.reload();
  await expect(page.getByRole("tab", { selected: true })).toContainText("Stakeholders");
  await expect(page).toHaveURL(address);
  expect(trouble).toEqual([]);
});

test("two runs are compared move by move, and the address shows the same to somebody else", async ({
  page,
  trouble,
  server,
  finished,
}) => {
  const other = await startRun(page, server, { rounds: 5 });
  await untilOver(page, server, other);
  await page.goto(`/compare?a=${finished}&b=${other}`);
  await expect(page.getByLabel("Before")).toHaveValue(finished);
  await expect(page.getByLabel("After")).toHaveValue(other);
  const settings = page.getByRole("region", { name: "Settings that differ" });
  await expect(settings.getByRole("row", { name: /rounds 3 5/ })).toBeVisible();
  const changes = page.getByRole("region", { name: "Rank changes" });
  await expect(changes.locator("tbody tr")).toHaveCount(15);
  await expect(changes.locator("[data-match=both]").first()).toHaveText(/(same|[↑↓] \d+)/);
  await expect(page.locator(".verdictline")).toHaveText(/first/);
  // The chart has the same changes as the table. A phone shows the table only.
  const chart = page.getByRole("img", { name: "Ranks of 15 moves in both runs" });
  if ((page.viewportSize()?.width ?? 0) > 700) {
    await expect(chart).toBeVisible();
    const unranked = page.getByRole("cell", { name: "–", exact: true });
    const both = changes.locator("[data-match=both]").filter({ hasNot: unranked });
    await expect(chart.locator(".slopeline path")).toHaveCount(await both.count());
    await expect(chart.locator(".slopeline.up")).toHaveCount(await changes.getByRole("cell", { name: "↑" }).count());
    await expect(chart.locator(".slopeline.down")).toHaveCount(await changes.getByRole("cell", { name: "↓" }).count());
  } else await expect(chart).toBeHidden();
  // The other way round, by the fields; the address follows.
  await page.getByLabel("Before").selectOption({ index: 0 });
  await expect(page).toHaveURL(/\/compare\?a=[0-9a-f-]{36}&b=/);
  await page.goto(`/runs/${finished}/results?vs=${other}`);
  await expect(page.locator(".dl").first()).toHaveText(/±0|[+−][0-9]+/);
  expect(trouble).toEqual([]);
});
