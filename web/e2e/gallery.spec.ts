// Writes the pictures of the documentation, by the real program: `cargo xtask web --gallery`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, Server, startRun, test, visit } from "./server";

const folder = process.env["MOOTHALL_GALLERY"];

test.skip(folder === undefined, "only on demand");

test("pictures", async ({ browser, finished, server }, info) => {
  test.setTimeout(300_000);
  const to = folder ?? "";
  mkdirSync(to, { recursive: true });
  const wide = info.project.name === "desktop";
  const size = wide ? { width: 1440, height: 900 } : { width: 390, height: 844 };
  // Slow enough that words, which are read apart from events, keep up with them.
  const slow = await Server.make("1");
  try {
    for (const theme of ["light", "dark"] as const) {
      const context = await browser.newContext({ viewport: size, colorScheme: theme, reducedMotion: "reduce" });
      const page = await context.newPage();
      const shoot = async (name: string) => {
        await page.waitForLoadState("networkidle");
        await page.evaluate(() => document.fonts.ready);
        await page.screenshot({ path: join(to, `${name}-${wide ? "wide" : "phone"}-${theme}.png`) });
      };
      if (theme === "light") {
        await visit(page, server);
        await page.goto(`${server.url}/`);
        await expect(page.getByText(/Newest filing/)).toBeVisible();
        await shoot("start");
        await page.goto(`${server.url}/runs/${finished}/results`);
        await expect(page.locator(".card")).toHaveCount(3);
        await shoot("results");
      }
      if (theme === "light" && wide) {
        await page.goto(`${server.url}/runs/${finished}?layer=0`);
        await expect(page.getByRole("row", { name: /^Revenue [^g]/ })).toBeVisible();
        await shoot("gather");
        server.write("Makefile", "all: test\n\ntest:\n\tpython3 -m unittest\n");
        const draft = server.draft(
          "Makefile",
          "all: build test\n\nbuild:\n\tpython3 -m compileall src > /tmp/build.log\n\ntest:\n\tpython3 -m unittest -v\n",
          "Adds a build step, and lets the tests say what they do.",
        );
        await page.goto(`${server.url}/drafts/${draft}`);
        await expect(page.locator("tr.added").first()).toBeVisible();
        await page.screenshot({ path: join(to, `draft-wide-${theme}.png`) });
      }
      if (theme === "light" && !wide) {
        await context.close();
        continue;
      }
      await visit(page, slow);
      const run = await startRun(page, slow, { rounds: 10, parallel_moves: 3 });
      await page.goto(`${slow.url}/runs/${run}?layer=3`);
      // Six are scored, and three are in their third round.
      await expect(page.locator('[data-move="m9"] .cell i.h').nth(5)).toBeVisible({ timeout: 120_000 });
      if (!wide) await page.locator("[data-move] .cell i.w").first().click();
      await expect(page.locator(".turn").nth(3)).toBeVisible();
      // A stream is never idle: here the page is photographed as it stands.
      await page.screenshot({ path: join(to, `run-${wide ? "wide" : "phone"}-${theme}.png`) });
      await context.close();
    }
  } finally {
    await slow.remove();
  }
});
