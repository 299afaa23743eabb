// Small things that a first user stumbles over.
import type { Page } from "@playwright/test";
import { isLoaded, tooSmall } from "./routes";
import { expect, Server, startRun, test, untilOver, viewOf, visit } from "./server";

test("everything that is pressed in dialogs is large enough for a finger", async ({ page, finished }, info) => {
  test.skip(info.project.name !== "phone", "for fingers; the pages themselves are in layout.spec.ts");
  const small: string[] = [];
  const look = async (at: string) => small.push(...(await tooSmall(page)).map((target) => `${at}: ${target}`));
  const dialog = page.getByRole("dialog");
  await page.goto(`/runs/${finished}`);
  await isLoaded(page);
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  await expect(dialog.getByRole("button", { name: "Start fork" })).toBeVisible();
  await look("fork");
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await page.keyboard.press("Control+k");
  await expect(dialog.getByRole("option").first()).toBeVisible();
  await look("palette");
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await page.goto(`/runs/${finished}/calls`);
  await isLoaded(page);
  await page.locator("details.callfilterbox > summary").click();
  await page.locator("details.callsumbox > summary").click();
  await expect(page.getByLabel("Retries only")).toBeVisible();
  await look("calls");

  const own = await Server.make("0", "without images", "tokens");
  try {
    await page.goto(`${own.url}/login`);
    await expect(page.getByLabel("Token")).toBeVisible();
    await look("login");
    await page.getByLabel("Token").fill(own.token("admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await isLoaded(page);
    own.write("Makefile", "all:\n\techo one\n");
    await page.goto(`${own.url}/drafts/${own.draft("Makefile", "all: build\n\techo two\n")}`);
    await page.getByRole("button", { name: /^Comment on/ }).click();
    await expect(page.getByLabel("Comment for the agent")).toBeVisible();
    await look("draft");
  } finally {
    await own.remove();
  }
  expect(small).toEqual([]);
});

test("every page counts the same calls, and doing nothing is in every chart", async ({ page, server, finished }) => {
  const { usage, about } = await viewOf(page, server, finished);
  const calls = usage.calls.toLocaleString("en");
  await page.goto(`/runs/${finished}`);
  await expect(page.locator(".meterbox")).toContainText(calls);
  await page.goto(`/runs/${finished}/calls`);
  const retries = { 0: "", 1: " and 1 retry" }[usage.extra_calls] ?? ` and ${usage.extra_calls} retries`;
  await expect(page.locator(".calltotal")).toHaveText(new RegExp(`^${calls} calls${retries} ·`));
  await page.goto(`/runs/${finished}/results`);
  await expect(page.locator(".facts")).toContainText(`${calls} calls`);
  await expect(page.locator(".facts")).toContainText(`doing nothing scores ${about.do_nothing?.score}`);
  await expect(page.getByRole("img", { name: /Score against disagreement/ })).toHaveAccessibleName(
    new RegExp(`doing nothing ${about.do_nothing?.score} points`),
  );
  const plots = page.locator("svg.range");
  const marks = page.locator("svg.range .nothingmark");
  expect(await marks.count()).toBe(await plots.count());
});

test("a run that was stopped or paused does not move", async ({ browser }, info) => {
  test.skip(info.project.name !== "desktop", "the same at both sizes");
  test.setTimeout(120_000);
  const server = await Server.make("1.5");
  try {
    const context = await browser.newContext({
      reducedMotion: "no-preference",
      viewport: { width: 1440, height: 900 },
    });
    const page = await context.newPage();
    const run = await startRun(page, server, { rounds: 10 });
    const moving = () =>
      page.evaluate(
        () =>
          document
            .getAnimations()
            .filter(
              (one) => one.playState === "running" && one.effect?.getTiming().iterations === Number.POSITIVE_INFINITY,
            ).length,
      );
    await page.goto(`${server.url}/runs/${run}?layer=3`);
    await expect(page.locator(".cell i.w").first()).toBeVisible({ timeout: 30_000 });
    expect(await moving()).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await expect(page.locator("[data-link]")).toContainText("Paused", { timeout: 30_000 });
    await expect.poll(moving).toBe(0);
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop permanently" }).click();
    await expect(page.locator("[data-link]")).toContainText("Stopped", { timeout: 30_000 });
    await expect.poll(moving).toBe(0);
    await context.close();
  } finally {
    await server.remove();
  }
});

test("the state of a debate stays in its column", async ({ page }, info) => {
  test.skip(info.project.name !== "desktop", "columns of a wide screen");
  const server = await Server.make("1");
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.goto(`${server.url}/runs/${run}?layer=3`);
    const state = page.locator(".lane .st .ellip");
    await expect(state.filter({ hasText: /round \d+, (critic|\d left)…/ }).first()).toBeVisible({ timeout: 30_000 });
    const overlaps = await page.locator(".lane").evaluateAll(
      (lanes) =>
        lanes.filter((lane) => {
          const strip = lane.querySelector(".strip")?.getBoundingClientRect();
          const words = lane.querySelector(".st > span")?.getBoundingClientRect();
          return strip && words && words.left < strip.right;
        }).length,
    );
    expect(overlaps).toBe(0);
  } finally {
    await server.remove();
  }
});

/** Replaces the browser's notifications, and gives back what they say. */
async function recordNotifications(page: Page): Promise<() => Promise<string[]>> {
  await page.context().grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const told: string[] = [];
    Object.assign(window, { told });
    class Recorded {
      static permission = "granted";
      static requestPermission = async () => "granted";
      constructor(title: string) {
        told.push(title);
      }
    }
    Object.assign(window, { Notification: Recorded });
  });
  return () => page.evaluate(() => (window as unknown as { told: string[] }).told);
}

async function notifyMe(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Notify me" }).click();
  await expect(page.getByRole("button", { name: "Notifying" })).toHaveAttribute("aria-pressed", "true");
}

test("the browser notifies when a run needs a review and when it ends", async ({ page }, info) => {
  test.skip(info.project.name !== "desktop", "the same at both sizes");
  test.setTimeout(120_000);
  const server = await Server.make("3");
  try {
    const told = await recordNotifications(page);
    await visit(page, server);
    const run = await startRun(page, server, { moves: 2, rounds: 1, pause_after_moves: true });
    await page.goto(`${server.url}/runs/${run}`);
    await notifyMe(page);
    await expect(page.locator("[data-link]")).toContainText("Needs you", { timeout: 60_000 });
    await expect.poll(told).toEqual(["HLXI needs you"]);
    await expect(page).toHaveTitle("Needs you: HLXI · Moothall");
    await page.getByRole("button", { name: "Start debates" }).click();
    await expect(page.locator("[data-link]")).toContainText("Finished", { timeout: 60_000 });
    await expect.poll(told).toEqual(["HLXI needs you", "HLXI has finished"]);
    await expect(page).toHaveTitle("Finished: HLXI · Moothall");
  } finally {
    await server.remove();
  }
});

test("drafts to review are counted in the navigation", async ({ page }) => {
  const server = await Server.make();
  try {
    server.write("Makefile", "all:\n\techo one\n");
    await visit(page, server);
    const link = page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /Drafts/ });
    await expect(link).toHaveAccessibleName("Drafts");
    server.draft("Makefile", "all: build\n\techo two /tmp/x\n");
    await page.reload();
    await expect(link).toHaveAccessibleName("Drafts 1 to review");
  } finally {
    await server.remove();
  }
});

test("keys: help, and actions in the palette", async ({ page, context, finished }, info) => {
  test.skip(info.project.name !== "desktop", "a phone has no keys");
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`/runs/${finished}`);
  await isLoaded(page);
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(help).toContainText("Search runs and pages, or run an action");
  await page.keyboard.press("Escape");
  await expect(help).toHaveCount(0);
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Search runs and pages" });
  await field.fill("copy link");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Link copied.")).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`/runs/${finished}`);
  await page.keyboard.press("Control+k");
  await field.fill("memo");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/memo$/);
});

test("a resumed demo keeps its pace", async ({ page }) => {
  const server = await Server.make("0.3");
  try {
    await visit(page, server);
    const run = await startRun(page, server, { moves: 3, rounds: 2, parallel_moves: 1 });
    await page.request.post(`${server.url}/api/runs/${run}/pause`, { headers: { origin: server.url } });
    await page.goto(`${server.url}/runs/${run}`);
    await expect(page.locator("[data-link]")).toContainText("Paused", { timeout: 30_000 });
    const before = (await viewOf(page, server, run)).usage.calls;
    const began = Date.now();
    await page.getByRole("button", { name: "Resume" }).click();
    await untilOver(page, server, run, 60_000);
    const { usage } = await viewOf(page, server, run);
    // With a delay of 0.3 s for each answer, and a few answers at a time.
    const perCall = (Date.now() - began) / Math.max(1, usage.calls - before);
    expect(perCall).toBeGreaterThan(20);
  } finally {
    await server.remove();
  }
});

test("sign-in and its errors have no barrier that axe can find", async ({ page }) => {
  const { AxeBuilder } = await import("@axe-core/playwright");
  const server = await Server.make("0", "without images", "tokens");
  try {
    const check = async () => {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
        expect(violations.map((one) => `${colorScheme}: ${one.id}`)).toEqual([]);
      }
    };
    await page.goto(`${server.url}/login`);
    await check();
    await page.getByLabel("Token").fill("moot_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText(/unknown, expired or revoked/)).toBeVisible();
    await check();
    await page.goto(`${server.url}/login?code=used-already`);
    await check();
  } finally {
    await server.remove();
  }
});
