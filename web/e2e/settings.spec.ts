// What people change: tokens of the team, and moves before they are debated.
import type { Route } from "@playwright/test";
import { expect, Server, startRun, test, untilOver, viewOf } from "./server";

test("a token is made, shown once, works, and is taken back", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const server = await Server.make("0", "without images", "link");
  try {
    await page.goto(await server.link());
    await page.goto(`${server.url}/settings`);
    await page.getByLabel("Label").fill("nightly script");
    await page.getByLabel("Permission").selectOption("read");
    await page.getByRole("button", { name: "Create token" }).click();
    const secret = await page.locator(".secret").textContent();
    expect(secret).toMatch(/^moot_/);
    await page.getByRole("button", { name: /^Copy: moot_/ }).click();
    await expect(page.getByText("Copied")).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(secret);
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

test("a run is asked to wait, and its banner leads to the moves", async ({ page, server, trouble }) => {
  await page.goto(`${server.url}/`);
  await page.getByLabel("Pause for my review before the debates start").check();
  await expect(page).toHaveURL(/wait=moves/);
  await expect(page.getByText(/Newest filing/)).toBeVisible();
  await page.getByRole("button", { name: "Start run" }).click();
  const panel = page.getByRole("region", { name: "Moves to review" });
  await expect(panel).toBeVisible();
  await page.getByRole("link", { name: "Review the moves" }).click();
  await expect(panel).toBeInViewport();
  expect(trouble).toEqual([]);
});

test("a run says that it will wait, until it waits", async ({ page }) => {
  const server = await Server.make("0.5");
  try {
    const run = await startRun(page, server, { moves: 1, rounds: 1, pause_after_moves: true });
    // The page does not learn that the run waits before it has shown that it will.
    const early = await viewOf(page, server, run);
    let release = () => {};
    const seen = new Promise<void>((done) => {
      release = done;
    });
    await page.route(`**/api/runs/${run}`, (route) => route.fulfill({ json: early }), { times: 1 });
    await page.route(/\/events\?/, async (route) => {
      await seen;
      await route.continue();
    });
    await page.goto(`${server.url}/runs/${run}`);
    const tag = page.getByText("Pauses after the moves");
    await expect(tag).toBeVisible();
    release();
    await expect(page.getByRole("link", { name: "Review the moves" })).toBeVisible({ timeout: 20_000 });
    await expect(tag).toHaveCount(0);
    await page.getByRole("button", { name: "Start debates" }).click();
    await untilOver(page, server, run);
    await expect(tag).toHaveCount(0);
  } finally {
    await server.remove();
  }
});

test("the banner of a run that waits leads to the moves before they have been read", async ({ page, server }) => {
  const run = await startRun(page, server, { moves: 2, pause_after_moves: true });
  await expect.poll(async () => (await viewOf(page, server, run)).status.state).toBe("paused");
  const answers: Route[] = [];
  await page.route(`**/api/runs/${run}/moves`, (route) => void answers.push(route));
  await page.goto(`${server.url}/runs/${run}`);
  const panel = page.getByRole("region", { name: "Moves to review" });
  await page.getByRole("link", { name: "Review the moves" }).click();
  await expect(panel).toBeFocused();
  await expect(panel.getByRole("status")).toHaveText("Loading the moves");
  // A server that has no answer is said so, and asked again when somebody wants it.
  await expect.poll(() => answers.length).toBe(1);
  await answers[0]?.fulfill({ status: 503, json: { code: "busy", detail: "The store is busy." } });
  await expect(panel.getByRole("alert")).toContainText("Could not load the moves. The store is busy.");
  await page.unroute(`**/api/runs/${run}/moves`);
  await panel.getByRole("button", { name: "Try again" }).click();
  await expect(panel.getByText("Review 2 moves before the debates")).toBeVisible();
  await expect(panel.getByRole("alert")).toHaveCount(0);
});

test("two people who edit one move do not overwrite each other unread", async ({ page, server }) => {
  const run = await startRun(page, server, { moves: 2, pause_after_moves: true });
  await page.goto(`${server.url}/runs/${run}`);
  const panel = page.getByRole("region", { name: "Moves to review" });
  await panel.getByRole("button", { name: "Edit m1" }).click();
  await panel.getByLabel("Title").fill("Mine");
  // Somebody else is faster.
  const path = `${server.url}/api/runs/${run}/moves`;
  const { moves } = (await (await page.request.get(path)).json()) as { moves: { proposal: object; seal: string }[] };
  const [first] = moves;
  const edit = { move: "m1", proposal: { ...first?.proposal, title: "Theirs" }, seal: first?.seal };
  const headers = { origin: server.url };
  expect((await page.request.post(path, { headers, data: { edit } })).status()).toBe(200);
  await panel.getByRole("button", { name: "Keep" }).click();
  await expect(panel.getByText("m1 has changed since you read it")).toBeVisible();
  await expect(panel.locator(".theirs")).toContainText("Theirs");
  await expect(panel.getByLabel("Title")).toHaveValue("Mine");
  await panel.getByRole("button", { name: "Replace it with my version" }).click();
  await panel.getByRole("button", { name: "Keep" }).click();
  await expect(panel.locator(".theirs")).toHaveCount(0);
  await expect(panel.getByText("Mine", { exact: true })).toBeVisible();
});

test("the sandboxes of the machine are tried on demand, and what is missing is said", async ({ page }, info) => {
  test.setTimeout(180_000);
  // Engines are tried once; that a page says what is missing, at both sizes.
  const images = info.project.name === "desktop" ? "with images" : "without images";
  const server = await Server.make("0", images);
  try {
    await page.goto(`${server.url}/settings`);
    const machine = page.getByRole("region", { name: "This machine" });
    await expect(machine).toContainText("Not tested yet.");
    await machine.getByRole("button", { name: "Test the sandboxes" }).click();
    if (images === "without images") {
      await expect(machine.getByRole("alert")).toContainText("moothall image build python");
    } else {
      await expect(machine).toContainText("Tested at", { timeout: 150_000 });
      await expect(machine.getByText("works", { exact: true }).first()).toBeVisible();
      await expect(machine).toContainText("Programs run on");
    }
    await expect(machine.getByRole("button", { name: "Test again" })).toBeEnabled();
  } finally {
    await server.remove();
  }
});

test("moves are vetoed and edited before they are debated", async ({ page, server, trouble }) => {
  const run = await startRun(page, server, { moves: 3, pause_after_moves: true });
  await page.goto(`${server.url}/runs/${run}`);
  const panel = page.getByRole("region", { name: "Moves to review" });
  await expect(panel.getByText("Review 3 moves before the debates")).toBeVisible();
  await panel.getByRole("button", { name: "Veto m1" }).click();
  await panel.getByLabel("Reason for removing it (optional)").fill("we tried that");
  await panel.getByRole("button", { name: "Veto", exact: true }).click();
  await expect(panel.getByText("vetoed", { exact: true })).toBeVisible();
  await panel.getByRole("button", { name: "Edit m2" }).click();
  await panel.getByLabel("Title").fill("Sell the idle plant");
  await panel.getByRole("button", { name: "Keep" }).click();
  await expect(panel.getByText("edited", { exact: true })).toBeVisible();
  await expect(panel.getByText("Sell the idle plant")).toBeVisible();
  await page.route(/\/resume$/, async (route) => {
    await new Promise((done) => setTimeout(done, 1000));
    await route.continue();
  });
  await panel.getByRole("button", { name: "Start debates" }).click();
  await expect(panel.getByRole("button", { name: "Starting…" })).toBeDisabled();
  await expect(panel).toHaveCount(0);
  await untilOver(page, server, run);
  const titles = (await viewOf(page, server, run)).consult?.moves.map((one) => one.title);
  expect(titles).toContain("Sell the idle plant");
  expect(trouble).toEqual([]);
});
