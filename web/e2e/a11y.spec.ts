import { AxeBuilder } from "@axe-core/playwright";
import { expect, startRun, test, viewOf } from "./server";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const routes = (run: string, waiting: string, draft: string) => [
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
];

/** What is made of colours. All else is the same page in both themes, and is looked at once. */
const COLOURS = ["color-contrast", "link-in-text-block"];

test("no page has a barrier that axe can find, in either theme", async ({ page, trouble, finished, server }) => {
  test.setTimeout(300_000);
  server.write("Makefile", "all:\n\techo one\n");
  const draft = server.draft("Makefile", "all: build\n\techo two /tmp/x\n");
  const waiting = await startRun(page, server, { moves: 2, pause_after_moves: true });
  await expect.poll(async () => (await viewOf(page, server, waiting)).status.state).toBe("paused");
  const found: string[] = [];
  for (const route of routes(finished, waiting, draft)) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(route);
    await expect(page.locator("h1")).toBeVisible();
    await expect(page.locator(".loading, .sk")).toHaveCount(0);
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
      // In the page itself, which has no frames: the other way opens a second page for each look.
      const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] });
      const { violations } = await (theme === "light" ? axe.withTags(TAGS) : axe.withRules(COLOURS)).analyze();
      for (const one of violations) {
        const where = one.nodes.map((node) => node.target.join(" ")).slice(0, 3);
        found.push(`${route} ${theme}: ${one.id}: ${where.join(" | ")}`);
      }
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) found.push(`${route}: ${wide} px too wide`);
  }
  expect(found).toEqual([]);
  // The page of a run that does not exist.
  expect(trouble.filter((one) => !one.includes("/api/runs/00000000-0000-7000-8000-000000000000"))).toEqual([]);
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
