// The verdict of a blind panel: every headline and sign, tiers with intervals, approval, comparison.
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, type Server, startRun, test, untilOver } from "./server";

const SMALL = { moves: 8, rounds: 1 };

/** The warning of a panel that failed. */
const SIGN =
  /✗ The panel missed \d of 5 planted controls\. No move is recommended; the order below is shown for inspection only\./;

/** Barriers and width of the page that is open, also in a window of the size of a phone: a panel takes seconds to run. */
async function barriers(page: Page): Promise<string[]> {
  const found: string[] = [];
  const size = page.viewportSize() ?? { width: 1440, height: 900 };
  for (const viewport of [{ width: 390, height: 844 }, size]) {
    await page.setViewportSize(viewport);
    const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    found.push(...violations.map((one) => `${viewport.width}: ${one.id}: ${one.nodes[0]?.target.join(" ")}`));
    if (wide > 0) found.push(`${viewport.width}: ${wide} px too wide`);
  }
  return found;
}

/** The built-in committee, whose panel has so few controls that it is doubtful. */
function fewControls(server: Server): string {
  const [head, rest] = server.text(["committee", "show"]).split("\n\n# The blind panel");
  const metrics = rest?.split("\n\n# Metrics")[1];
  if (metrics === undefined) throw new Error("the committee file has another layout");
  return `${head}\n\n# Metrics${metrics}\n[verdict]\nagain = []\ncontrols = { known_bad = 1, weakened = 1 }\n`;
}

/** Runs with another headline or sign, as `OUTCOMES` in crates/moothall/tests/it/verdict.rs; the failed panel is below. */
const OUTCOMES: {
  name: string;
  more: (server: Server) => Record<string, unknown>;
  headline: RegExp;
  sign: string | undefined;
  controls: number;
  note: RegExp;
}[] = [
  {
    name: "several moves lead",
    more: () => ({}),
    headline: /^\d+ moves lead; the panel cannot tell them apart$/,
    sign: undefined,
    controls: 5,
    note: /^A second run would most likely keep its winner among these \d+\.$/,
  },
  {
    name: "doing nothing leads",
    more: () => ({ panel: ["demo/cautious"] }),
    headline: /^Doing nothing cannot be told apart from the best moves$/,
    sign: undefined,
    controls: 5,
    note: /^Not shown to beat doing nothing: m1, m2, .* and m15\.$/,
  },
  {
    name: "a doubtful panel",
    more: (server) => ({ committee_file: fewControls(server) }),
    headline: /^\d+ moves lead; the panel cannot tell them apart$/,
    sign: "! Only 2 controls were planted; 4 are needed. Treat the tiers with care.",
    controls: 2,
    note: /^Told apart with 95 % confidence: m\d+.* from m\d+.*\.$/,
  },
];

for (const { name, more, headline, sign, controls, note } of OUTCOMES) {
  test(`the verdict in words, by keyboard and without barriers: ${name}`, async ({ page, server }) => {
    test.setTimeout(120_000);
    const run = await startRun(page, server, { rounds: 2, verdict: "panel", ...more(server) });
    await untilOver(page, server, run, 90_000);
    await page.goto(`/runs/${run}/results`);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Recommended moves for Helix Instruments, Inc.");
    const panel = page.getByRole("region", { name: "Verdict of the panel" });
    await expect(panel.getByRole("heading", { level: 2 })).toHaveText(headline);
    await expect(panel.locator(".note")).toHaveText(sign === undefined ? [] : [sign]);
    await expect(panel.getByRole("heading", { level: 3 })).toHaveText("What would change this");
    await expect(panel.getByRole("listitem").filter({ hasText: note })).toHaveCount(1);
    // More moves lead than are described.
    await expect(page.locator(".card")).toHaveCount(3);
    await expect(panel.getByText("Not all moves of the lead are described below.")).toBeVisible();
    const box = panel.getByRole("checkbox", { name: "Show the planted controls" });
    const diamonds = panel.getByRole("img", { name: /^control, score \d+$/ });
    await box.focus();
    await page.keyboard.press("Space");
    await expect(box).toBeChecked();
    await expect(diamonds).toHaveCount(controls);
    expect(await barriers(page)).toEqual([]);
    await page.keyboard.press("Space");
    await expect(diamonds).toHaveCount(0);
  });
}

test("tiers with intervals are readable by everyone and lead to the moves", async ({ page, server }) => {
  test.setTimeout(120_000);
  const run = await startRun(page, server, { ...SMALL, verdict: "full" });
  await untilOver(page, server, run, 90_000);
  await page.goto(`/runs/${run}/results`);
  const panel = page.getByRole("region", { name: "Verdict of the panel" });
  await expect(panel.getByRole("heading", { level: 2 })).toContainText(/lead/);
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
  test.setTimeout(120_000);
  const run = await startRun(page, server, { ...SMALL, verdict: "panel", panel: ["demo/contrary"] });
  await untilOver(page, server, run, 90_000);
  await page.goto("/runs");
  await expect(page.getByText(/✗ The panel missed/).first()).toBeVisible();
  // The page of the run says what its row says.
  await page.goto(`/runs/${run}?layer=4`);
  await expect(page.locator("[data-link=ended]")).toContainText("Needs review");
  await expect(page).toHaveTitle("Needs review: HLXI · Moothall");
  const last = page.locator(".ranklist");
  await expect(last.locator(".note")).toHaveText([SIGN]);
  await expect(last.locator(".rline").first()).toHaveText(/^Lead/);
  await page.goto(`/runs/${run}/results`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("No verdict for Helix Instruments, Inc.");
  const panel = page.getByRole("region", { name: "Verdict of the panel" });
  await expect(panel.getByRole("heading")).toHaveText(["No verdict: the panel failed its controls"]);
  await expect(panel.locator(".note")).toContainText(SIGN);
  await expect(page.locator(".card")).toHaveCount(0);
  expect(await barriers(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve anyway" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByText("The verdict is approved.")).toBeVisible();
  await expect(panel.locator(".note")).toContainText(SIGN);
});

test("the last stage of a run with a panel shows tiers, and two such runs are compared by them", async ({
  page,
  server,
}) => {
  test.setTimeout(120_000);
  const first = await startRun(page, server, { ...SMALL, verdict: "panel" });
  await untilOver(page, server, first);
  const second = await startRun(page, server, { ...SMALL, rounds: 2, verdict: "panel" });
  await untilOver(page, server, second);
  await page.goto(`/runs/${first}?layer=4`);
  const lines = page.locator(".ranklist .rline");
  await expect(lines).toHaveCount(8);
  await expect(lines.first()).toHaveText(/^Lead/);
  for (const line of await lines.all()) await expect(line).toHaveText(/^(Lead|Middle|Behind)m\d /);
  expect(await barriers(page)).toEqual([]);

  await page.goto(`/compare?a=${first}&b=${second}`);
  const comparison = page.locator(".comparison");
  await expect(comparison.locator(".verdictline")).toHaveText(/^Both runs have m\d.* in the lead\. .*tier\.$/);
  const changes = page.getByRole("region", { name: "Tier changes" });
  await expect(changes.locator("tbody tr")).toHaveCount(8);
  await expect(changes.locator("tbody tr").first()).toHaveText(/(Lead|Middle|Behind|–)Lead(same|changed)/);
  await expect(comparison).not.toHaveText(/first|rank/i);
  await expect(page.locator(".slope")).toHaveCount(0);
  expect(await barriers(page)).toEqual([]);
});
