// How long pages take on a processor slowed down four times. Printed, not judged: a busy machine is no slow program.
import { expect, test } from "./server";

test("times of pages", async ({ page, trouble, finished }, info) => {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  for (const [name, path] of [
    ["start", "/"],
    ["run", `/runs/${finished}?layer=3`],
    ["drafts", "/drafts"],
  ] as const) {
    const began = Date.now();
    await page.goto(path);
    await expect(page.locator("h1")).toBeVisible();
    await expect(page.locator(".loading, .sk")).toHaveCount(0);
    const usable = Date.now() - began;
    const paint = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
    await expect.poll(paint).toBeGreaterThan(0);
    const painted = await paint();
    process.stdout.write(
      `${info.project.name} ${name}: first paint ${Math.round(painted)} ms, usable ${usable} ms (4x slower CPU)\n`,
    );
  }
  expect(trouble).toEqual([]);
});
