// What people change: tokens of the team, and moves before they are debated.
import { expect, Server, startRun, test, untilOver, viewOf } from "./server";

test("a token is made, shown once, works, and is taken back", async ({ page }) => {
  const server = await Server.make("0", "without images", "link");
  try {
    await page.goto(await server.link());
    await page.goto(`${server.url}/settings`);
    await page.getByLabel("What it is for").fill("nightly script");
    await page.getByLabel("May").selectOption("read");
    await page.getByRole("button", { name: "Make a token" }).click();
    const secret = await page.locator(".secret").textContent();
    expect(secret).toMatch(/^moot_/);
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${server.url}/api/runs`, { headers })).status).toBe(200);
    await page.reload();
    await expect(page.getByText("nightly script")).toBeVisible();
    await expect(page.locator(".secret")).toHaveCount(0);
    await page.getByRole("button", { name: "Revoke nightly script" }).click();
    await page.getByRole("button", { name: "Really revoke nightly script" }).click();
    await expect(page.getByText("revoked", { exact: true })).toBeVisible();
    expect((await fetch(`${server.url}/api/runs`, { headers })).status).toBe(401);
  } finally {
    await server.remove();
  }
});

test("moves are vetoed and edited before they are debated", async ({ page, server, trouble }) => {
  const run = await startRun(page, server, { moves: 3, pause_after_moves: true });
  await page.goto(`${server.url}/runs/${run}`);
  const panel = page.getByRole("region", { name: "Moves that wait for you" });
  await expect(panel.getByText("3 moves wait for you before the debates")).toBeVisible();
  await panel.getByRole("button", { name: "Veto m1" }).click();
  await panel.getByLabel("Why it is not debated (optional)").fill("we tried that");
  await panel.getByRole("button", { name: "Veto", exact: true }).click();
  await expect(panel.getByText("vetoed", { exact: true })).toBeVisible();
  await panel.getByRole("button", { name: "Edit m2" }).click();
  await panel.getByLabel("Title").fill("Sell the idle plant");
  await panel.getByRole("button", { name: "Keep" }).click();
  await expect(panel.getByText("edited", { exact: true })).toBeVisible();
  await expect(panel.getByText("Sell the idle plant")).toBeVisible();
  await panel.getByRole("button", { name: "Let the debates begin" }).click();
  await expect(panel).toHaveCount(0);
  await untilOver(page, server, run);
  const titles = (await viewOf(page, server, run)).consult?.moves.map((one) => one.title);
  expect(titles).toContain("Sell the idle plant");
  expect(trouble).toEqual([]);
});
