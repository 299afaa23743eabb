import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { isLoaded, prepareRoutes, waitingRun } from "./routes";
import { expect, Server, test, visit } from "./server";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What is made of colours. All else is the same page in both themes, and is looked at once. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/** The barriers of what is on screen, in both themes, and whether it scrolls sideways. */
async function barriers(page: Page, name: string): Promise<string[]> {
  const found: string[] = [];
  // Pages without scripts follow the browser.
  const hasTheme = (await page.locator("html[data-theme]").count()) > 0;
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    if (hasTheme) await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
    // In the page itself, which has no frames: the other way opens a second page for each look.
    const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] });
    const { violations } = await (theme === "light" ? axe.withTags(TAGS) : axe.withRules(COLOURS)).analyze();
    for (const one of violations) {
      const where = one.nodes.map((node) => node.target.join(" ")).slice(0, 3);
      found.push(`${name} ${theme}: ${one.id}: ${where.join(" | ")}`);
    }
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) found.push(`${name}: ${wide} px too wide`);
  return found;
}

test("no page has a barrier that axe can find, in either theme", async ({ page, trouble, finished, server }) => {
  test.setTimeout(300_000);
  const found: string[] = [];
  for (const route of await prepareRoutes(page, server, finished)) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(route);
    await isLoaded(page);
    found.push(...(await barriers(page, route)));
  }
  expect(found).toEqual([]);
  // Runs that the server does not have.
  expect(trouble.filter((one) => !one.includes("/api/runs/00000000-0000-7000-8000-"))).toEqual([]);
});

test("open dialogs and filters have no barrier that axe can find", async ({ page, finished }) => {
  test.setTimeout(120_000);
  const found: string[] = [];
  const dialog = page.getByRole("dialog");
  await page.goto(`/runs/${finished}`);
  await isLoaded(page);
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(dialog.getByRole("button", { name: "Start fork" })).toBeVisible();
  found.push(...(await barriers(page, "fork")));
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await page.keyboard.press("Control+k");
  await expect(dialog.getByRole("option").first()).toBeVisible();
  found.push(...(await barriers(page, "palette")));
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await page.keyboard.press("?");
  await expect(dialog.getByRole("heading", { name: "Keyboard shortcuts" })).toBeVisible();
  found.push(...(await barriers(page, "help")));
  await page.goto(`/runs/${finished}/calls`);
  await isLoaded(page);
  await expect(page.locator(".callrow").nth(1)).toBeVisible();
  // On a phone both are folded.
  for (const box of ["callfilterbox", "callsumbox"]) {
    const folded = page.locator(`details.${box}:not([open]) > summary`);
    if (await folded.isVisible()) await folded.click();
  }
  await expect(page.getByLabel("Move", { exact: true })).toBeVisible();
  found.push(...(await barriers(page, "filters of the calls")));
  expect(found).toEqual([]);
});

test("refusals and a server that is away have no barrier that axe can find", async ({ page }) => {
  test.setTimeout(120_000);
  const server = await Server.make();
  try {
    const found: string[] = [];
    await page.goto(server.url.replace("127.0.0.1", "other.localhost"));
    await expect(page.getByText(/does not accept the host name/)).toBeVisible();
    found.push(...(await barriers(page, "refused host")));
    await page.goto(`${server.url}/review`);
    await expect(page.getByText("This link is incomplete")).toBeVisible();
    found.push(...(await barriers(page, "incomplete review link")));
    await page.goto("about:blank");
    await page.goto(`${server.url}/review#${"0".repeat(64)}`);
    await expect(page.getByText("This link cannot be used")).toBeVisible();
    found.push(...(await barriers(page, "wrong review link")));

    await visit(page, server);
    const run = await waitingRun(page, server);
    await page.goto(`${server.url}/runs/${run}`);
    await isLoaded(page);
    await server.kill();
    await expect(page.getByRole("alert")).toContainText("Can't reach the server.", { timeout: 30_000 });
    found.push(...(await barriers(page, "run without its server")));
    await page.getByRole("link", { name: "Audit" }).first().click();
    await expect(page.getByRole("heading", { name: "Can't reach the server" })).toBeVisible();
    found.push(...(await barriers(page, "page without its server")));
    expect(found).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("nothing moves for those who asked for it, and paper gets no buttons", async ({ page, finished }) => {
  await page.goto(`/runs/${finished}/results`);
  await expect(page.locator(".card")).toHaveCount(3);
  const moving = await page.evaluate(
    () => document.getAnimations().filter((one) => one.playState === "running").length,
  );
  expect(moving).toBe(0);
  await page.emulateMedia({ media: "print" });
  await expect(page.locator("header.top")).toBeHidden();
  await expect(page.locator(".exp")).toBeHidden();
  await expect(page.locator(".card").first()).toBeVisible();
});
