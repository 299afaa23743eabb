import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "./server";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const routes = (run: string, draft: string) => [
  "/",
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
];

for (const theme of ["light", "dark"] as const)
  test(`no page has a barrier that axe can find, ${theme}`, async ({ page, trouble, finished, server }) => {
    test.setTimeout(300_000);
    server.write("Makefile", "all:\n\techo one\n");
    const draft = server.draft("Makefile", "all: build\n\techo two /tmp/x\n");
    await page.emulateMedia({ colorScheme: theme });
    const found: string[] = [];
    for (const route of routes(finished, draft)) {
      await page.goto(route);
      await expect(page.locator("h1")).toBeVisible();
      await expect(page.locator(".loading, .sk")).toHaveCount(0);
      await expect(page.locator("html")).toHaveAttribute("data-theme", theme);
      const { violations } = await new AxeBuilder({ page }).withTags(TAGS).analyze();
      for (const one of violations)
        found.push(
          `${route}: ${one.id}: ${one.nodes
            .map((node) => node.target.join(" "))
            .slice(0, 3)
            .join(" | ")}`,
        );
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${route}: ${wide} px too wide`);
    }
    expect(found).toEqual([]);
    expect(trouble).toEqual([]);
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
