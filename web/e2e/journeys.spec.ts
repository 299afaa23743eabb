// Whole journeys, at both sizes: what a person sees and does from the first page to the last.
import type { Locator, Page } from "@playwright/test";
import type { RunView } from "../src/gen/run";
import { expect, Server, startRun, test, untilOver, viewOf, visit, watch } from "./server";

const chip = (page: Page) => page.locator("[data-link]");

/** Buttons and links that look like the main thing to do. */
const primaries = (page: Page) => page.locator("main .btn.pri:visible");

async function isReadable(text: Locator): Promise<void> {
  await text.scrollIntoViewIfNeeded();
  await expect(text).toBeInViewport();
  // Nothing around it scrolls by itself: the page does.
  const nested = await text.evaluate((one) => {
    for (let at = one.parentElement; at && at !== document.body; at = at.parentElement)
      if (/auto|scroll/.test(getComputedStyle(at).overflowY) && at.scrollHeight > at.clientHeight) return at.className;
    return "";
  });
  expect(nested).toBe("");
}

test("sign in, start, review the moves, pause, resume, read the memo and follow a citation", async ({ page }) => {
  test.setTimeout(180_000);
  const server = await Server.make("0.7", "without images", "tokens");
  try {
    await page.goto(`${server.url}/`);
    await page.getByLabel("Token").fill(server.token("admin"));
    await page.getByRole("button", { name: "Sign in" }).click();
    const trouble = watch(page);

    // A company is found by its name.
    const ticker = page.getByRole("combobox", { name: "Ticker" });
    await ticker.fill("helix");
    await page.getByRole("option", { name: /HLXI/ }).click();
    await expect(ticker).toHaveValue("HLXI");
    await expect(page.getByText(/Newest filing/)).toBeVisible();
    await page.getByRole("button", { name: "3", exact: true }).click();
    await page.getByText("Options", { exact: true }).click();
    await page.getByLabel("Verdict", { exact: true }).selectOption("off");
    await page.getByLabel("Pause for my review before the debates start").check();
    await page.getByRole("button", { name: "Start run" }).click();

    // The moves can be read where they are, and one button goes on.
    await expect(chip(page)).toContainText("Needs you", { timeout: 60_000 });
    await expect(page).toHaveTitle(/^Needs you: HLXI/);
    const panel = page.getByRole("region", { name: "Moves to review" });
    await expect(panel.getByRole("heading")).toHaveText("Review 15 moves before the debates");
    const moves = panel.locator("ol > li");
    await expect(moves).toHaveCount(15);
    for (const what of ["Analyst", "Cost", "Horizon", "Numbers"])
      await expect(moves.first().getByText(what, { exact: true })).toBeVisible();
    await isReadable(moves.first().locator(".moveproposal .agent").first());
    // Risks are part of the decision; only the actions are folded.
    await isReadable(
      moves
        .first()
        .locator("div", { hasText: /^Risks/ })
        .getByRole("listitem")
        .first(),
    );
    await expect(moves.first().getByText(/^\d+ actions?$/)).toBeVisible();
    await expect(moves.first().locator("details li").first()).toBeHidden();
    await isReadable(moves.nth(9).locator(".moveproposal .agent").first());
    await expect(primaries(page)).toHaveCount(1);
    await expect(primaries(page)).toHaveText("Start debates");
    await expect(page.getByRole("button", { name: "Resume" })).toHaveCount(0);
    await panel.getByRole("button", { name: "Start debates" }).click();
    await expect(panel).toHaveCount(0, { timeout: 30_000 });

    await expect(chip(page)).toContainText("Running");
    await expect(page).toHaveTitle(/^\[\d+ %\] HLXI/);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await expect(chip(page)).toHaveText(/^(Pausing…|Paused)/);
    await expect(chip(page)).toContainText("Paused", { timeout: 30_000 });
    await expect(primaries(page)).toHaveText(["Resume"]);
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(chip(page)).toHaveText(/^(Resuming…|Running)/);
    await expect(chip(page)).toContainText("Finished", { timeout: 90_000 });
    await expect(primaries(page)).toHaveText(["Results"]);

    await page.getByRole("link", { name: "Results", exact: true }).click();
    const verdict = page.getByRole("region", { name: "Verdict" });
    await expect(verdict).toContainText(/The committee recommends|Too close to call|No move beats doing nothing/);
    await expect(verdict).toContainText("doing nothing");
    await expect(verdict.getByRole("heading", { name: "What would change this" })).toBeVisible();
    await expect(page.locator(".nothingline, .nothingmark").first()).toBeAttached();

    await page.getByRole("link", { name: "Read the memo" }).click();
    await expect(page).toHaveURL(/\/memo$/);
    const contents = page.getByRole("navigation", { name: "Contents" });
    const last = contents.getByRole("link").last();
    const words = (await last.textContent()) ?? "";
    await last.click();
    await expect(page).toHaveURL(/#/);
    await expect(page.locator(".memohead").filter({ hasText: words }).last()).toBeInViewport();

    // The fact is shown on focus, and opens on a click.
    const cite = page.locator(".memo a.cite").filter({ hasText: "FY20" }).first();
    await cite.focus();
    await expect(page.getByRole("tooltip")).toContainText(/Filed in|Computed as/);
    await cite.click();
    await expect(page).toHaveURL(/fact=F0/);
    await expect(page.getByRole("dialog")).toContainText("Cited as");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog")).toHaveCount(0);
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("a server that is killed during a run: true words at every moment", async ({ page }) => {
  test.setTimeout(180_000);
  const server = await Server.make("0.5");
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.goto(`${server.url}/runs/${run}?layer=3`);
    await expect(chip(page)).toContainText("Running");
    await expect(page.locator(".cell i.h").first()).toBeVisible({ timeout: 30_000 });
    await server.kill("SIGKILL");
    await expect(chip(page)).toContainText("Disconnected");
    const alert = page.getByRole("alert");
    await expect(alert).toContainText("Can't reach the server.", { timeout: 30_000 });
    await expect(alert).toContainText("if it has stopped, this run has stopped too");
    await expect(alert).toContainText(/Showing data as of \d\d:\d\d:\d\d; reconnecting\./);
    await expect(page.getByText("new version")).toHaveCount(0);
    // Another page says the same, and forgets it when the server is back.
    await page.getByRole("link", { name: "Audit" }).first().click();
    await expect(page.getByRole("heading", { name: "Can't reach the server" })).toBeVisible();
    await server.start();
    await expect(page.getByRole("heading", { level: 1, name: /Audit/ })).toBeVisible({ timeout: 30_000 });
    await page.goBack();
    await expect(chip(page)).toContainText("Interrupted", { timeout: 30_000 });
    await expect(page.getByText("Interrupted: the server stopped during this run.")).toBeVisible();
    await expect(page.locator(".cell i.w")).toHaveCount(0);
    await expect(primaries(page)).toHaveText(["Resume"]);
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(chip(page)).toHaveText(/^(Resuming…|Running)/);
    await expect(chip(page)).toContainText("Running", { timeout: 30_000 });
    await expect(chip(page)).toContainText("Finished", { timeout: 90_000 });
  } finally {
    await server.remove();
  }
});

test("a read-only user sees everything and is offered nothing that cannot work", async ({ page, browser }) => {
  test.setTimeout(150_000);
  const server = await Server.make("0", "without images", "tokens");
  try {
    const admin = await (await browser.newContext()).newPage();
    const signIn = async (who: Page, scope: string) => {
      await who.goto(`${server.url}/`);
      await who.getByLabel("Token").fill(server.token(scope));
      await who.getByRole("button", { name: "Sign in" }).click();
      await expect(who.getByRole("combobox", { name: "Ticker" })).toBeVisible();
    };
    await signIn(admin, "admin");
    await admin.getByLabel("Pause for my review before the debates start").check();
    await expect(admin.getByText(/Newest filing/)).toBeVisible();
    await admin.getByRole("button", { name: "Start run" }).click();
    await expect(chip(admin)).toContainText("Needs you");
    const run = new URL(admin.url()).pathname;

    await signIn(page, "read");
    const trouble = watch(page);
    await expect(page.getByRole("button", { name: "Start run" })).toBeDisabled();
    await expect(page.getByText("You have read-only access. Ask an admin for run access.")).toBeVisible();
    await page.goto(`${server.url}/tasks`);
    await expect(page.getByRole("button", { name: "Start", exact: true })).toBeDisabled();
    await expect(page.getByText("You have read-only access.")).toBeVisible();
    await page.goto(`${server.url}${run}`);
    await expect(chip(page)).toContainText("Needs review");
    await expect(page.getByText("Review 15 moves before the debates")).toBeVisible();
    for (const name of ["Resume", "Stop", "Fork", "Start debates", "Edit m1", "Veto m1"])
      await expect(page.getByRole("button", { name, exact: true })).toHaveCount(0);
    await page.goto(`${server.url}/runs`);
    await page.getByRole("checkbox", { name: /Select HLXI/ }).check();
    await expect(page.getByRole("button", { name: "Delete" })).toBeDisabled();
    await expect(page.getByText("Only an admin can delete runs.")).toBeVisible();
    await expect(page.getByRole("link", { name: /Run again/ })).toHaveCount(0);

    // Only a reviewer decides about a failed panel, a move that is held back, and a draft.
    const bearer = { authorization: `Bearer ${server.token("admin")}` };
    const api = await (await browser.newContext({ extraHTTPHeaders: bearer })).newPage();
    const judged = await startRun(api, server, { moves: 8, rounds: 1, verdict: "panel", panel: ["demo/contrary"] });
    await untilOver(api, server, judged, 90_000);
    await page.route(`**/api/runs/${judged}`, async (route) => {
      const response = await route.fetch();
      const view = (await response.json()) as RunView;
      const moves = view.consult?.moves.map((one) => ({ ...one, held: one.move_id === "m2" }));
      await route.fulfill({ response, json: { ...view, consult: { ...view.consult, moves } } });
    });
    await page.goto(`${server.url}/runs/${judged}/results`);
    await expect(page.getByText(/A reviewer decides this\.$/)).toHaveCount(2);
    await expect(page.getByRole("button", { name: /^Approve/ })).toHaveCount(0);
    await page.unrouteAll({ behavior: "ignoreErrors" });
    server.write("Makefile", "all:\n\techo one\n");
    const draft = server.draft("Makefile", "all: build\n\techo two\n");
    await page.goto(`${server.url}/drafts/${draft}`);
    await expect(page.getByText("A reviewer decides this.")).toBeVisible();
    for (const name of [/^Approve/, /^Reject/, /^Send back/, /^Edit/, /^Comment/])
      await expect(page.getByRole("button", { name })).toHaveCount(0);
    expect(trouble).toEqual([]);
    await api.context().close();
    await admin.context().close();
  } finally {
    await server.remove();
  }
});

test("a fresh machine without image or key says what is missing, with the command", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const server = await Server.make("0", "without images", "none", { name: "anthropic/claude-haiku-5-5", config: "" });
  try {
    await visit(page, server);
    const trouble = watch(page);
    await page.goto(`${server.url}/`);
    const setup = page.getByRole("region", { name: "Set up" });
    await expect(setup.getByRole("listitem").nth(0)).toContainText("Set a model and its API key");
    await expect(page.getByRole("button", { name: "Start run" })).toBeDisabled();
    await expect(page.locator(".formproblem")).toContainText("No API key for anthropic");
    await setup.getByRole("button", { name: "Copy: moothall image build" }).click();
    await expect(setup.getByText("Copied")).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe("moothall image build");

    await page.goto(`${server.url}/tasks`);
    await page.getByLabel("Task", { exact: true }).fill("Print 1");
    await expect(page.getByRole("button", { name: "Start", exact: true })).toBeDisabled();
    // With a model that needs no key, the sandbox is what is missing.
    await page.getByText("Options", { exact: true }).click();
    await page.getByLabel("Model").fill("demo");
    await expect(page.getByText("The Python sandbox isn't installed.")).toBeVisible();
    await expect(page.getByRole("button", { name: "Copy: moothall image build python" })).toBeVisible();
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("two runs are compared from the list, and the permalink shows the same", async ({ page, browser }) => {
  const server = await Server.make();
  try {
    await visit(page, server);
    const first = await startRun(page, server, { moves: 4, rounds: 1 });
    await untilOver(page, server, first);
    const second = await startRun(page, server, { moves: 4, rounds: 2 });
    await untilOver(page, server, second);
    const trouble = watch(page);
    await page.goto(`${server.url}/runs`);
    const boxes = page.getByRole("checkbox", { name: /Select HLXI/ });
    await expect(boxes).toHaveCount(2);
    for (const box of await boxes.all()) await box.check();
    await page.getByRole("button", { name: "Compare" }).click();
    await expect(page).toHaveURL(`${server.url}/compare?a=${first}&b=${second}`);
    const told = page.locator(".verdictline");
    await expect(told).toHaveText(/first/);
    await expect(page.getByRole("region", { name: "Settings that differ" })).toContainText("rounds");

    const other = await (await browser.newContext()).newPage();
    await other.goto(page.url());
    await expect(other.locator(".verdictline")).toHaveText((await told.textContent()) ?? "-");
    const change = page.getByRole("region", { name: "Rank changes" }).getByRole("link").first();
    await change.click();
    await expect(page).toHaveURL(new RegExp(`/runs/${second}\\?layer=3&move=m`));
    expect((await viewOf(page, server, second)).status.state).toBe("complete");
    expect(trouble).toEqual([]);
    await other.context().close();
  } finally {
    await server.remove();
  }
});
