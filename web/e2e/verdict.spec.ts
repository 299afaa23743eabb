// The verdict of a blind panel: tiers with intervals, the sign of a panel that failed its controls, and its approval.
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, startRun, test, untilOver } from "./server";

const SMALL = { moves: 8, rounds: 1 };

/** Barriers and width of the page that is open. */
async function barriers(page: Page): Promise<string[]> {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  return [
    ...violations.map((one) => `${one.id}: ${one.nodes[0]?.target.join(" ")}`),
    ...(wide > 0 ? [`${wide} px`] : []),
  ];
}

test("tiers with intervals are readable by everyone and lead to the moves", async ({ page, server }) => {
  const run = await startRun(page, server, { ...SMALL, verdict: "full" });
  await untilOver(page, server, run, 90_000);
  await page.goto(`/runs/${run}/results`);
  const panel = page.getByRole("region", { name: "Verdict of the panel" });
  await expect(panel.getByRole("heading")).toContainText(/lead/);
  await expect(panel.getByRole("rowgroup").filter({ hasText: "Lead" })).toBeVisible();
  // Eight moves and doing nothing, each with a score in words for those who see no chart.
  await expect(panel.getByRole("img", { name: /^score \d+, interval \d+ to \d+$/ })).toHaveCount(9);
  // No place within a tier.
  await expect(page.getByText(/^(First|Second|Third)$/)).toHaveCount(0);
  // Planted controls are hidden until they are asked for.
  const diamonds = panel.getByRole("img", { name: /^control, score \d+$/ });
  await expect(diamonds).toHaveCount(0);
  await panel.getByLabel("Show the planted controls").check();
  await expect(diamonds).toHaveCount(5);
  const forecasts = page.getByRole("region", { name: "Forecasts" });
  await expect(forecasts).toContainText(/^Forecasts0 of \d+ answered by later filings/);
  await expect(
    forecasts.getByRole("row", { name: / above [\d,.]+ million .* \d+ % Open until \d{4}-/ }).first(),
  ).toBeVisible();
  await expect(forecasts).toContainText(`moothall outcome record ${run.slice(0, 13)}`);
  expect(await barriers(page)).toEqual([]);
  const link = panel.getByRole("link").first();
  await link.focus();
  const target = new URL((await link.getAttribute("href")) ?? "", server.url).search;
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`${target.replaceAll("?", "\\?")}$`));
});

test("a failed panel recommends nothing, says so everywhere, and a person can approve it", async ({ page, server }) => {
  const run = await startRun(page, server, { ...SMALL, verdict: "panel", panel: ["demo/contrary"] });
  await untilOver(page, server, run, 90_000);
  await page.goto("/runs");
  await expect(page.getByText(/✗ The panel missed/).first()).toBeVisible();
  await page.goto(`/runs/${run}/results`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("No verdict for");
  await expect(page.getByText(/✗ The panel missed/)).toBeVisible();
  await expect(page.locator(".card")).toHaveCount(0);
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve anyway" }).click();
  await expect(page.getByText("The verdict is approved.")).toBeVisible();
  await expect(page.getByText(/✗ The panel missed/)).toBeVisible();
});
