import type { DebateDegradation, MoveView, RunView } from "../src/gen/run";
import { expect, Server, startRun, test, visit, watch } from "./server";

const SHORT: DebateDegradation = {
  degraded: "ended-early",
  thread: "D2",
  after_round: 2,
  why: "the model did not answer",
};

test("a ticker that nobody knows is said so, and nothing starts", async ({ page, trouble }) => {
  // As on a server with a contact for the SEC, which can look up every company.
  await page.route("**/api/settings", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), contact: true } });
  });
  await page.goto("/");
  await page.getByRole("combobox", { name: "Ticker" }).fill("ZZZZ9");
  await expect(page.getByText("No company with this ticker")).toBeVisible();
  await page.getByRole("button", { name: "Start run" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page).toHaveURL(/\/(\?.*)?$/);
  // The refusals themselves are what is tested here; a browser writes each of them into its console.
  expect(trouble.filter((one) => !/status of 4[0-9]{2}/.test(one))).toEqual([]);
});

test("the missing contact for the SEC is named before a run about a real company starts", async ({ page, trouble }) => {
  await page.goto("/");
  const start = page.getByRole("button", { name: "Start run" });
  await expect(start).toBeEnabled();
  const ticker = page.getByRole("combobox", { name: "Ticker" });
  await ticker.fill("AAPL");
  await expect(page.getByText("Companies cannot be looked up")).toBeVisible();
  await expect(page.locator(".formproblem")).toContainText("The SEC requires a contact name and email.");
  await expect(page.locator(".formproblem").getByRole("button", { name: "Copy: moothall init" })).toBeVisible();
  await expect(start).toBeDisabled();
  await expect(start).toHaveAccessibleDescription(/The SEC requires a contact/);
  await ticker.fill("HLXI");
  await expect(start).toBeEnabled();
  await expect(page.locator(".formproblem")).toHaveCount(0);
  expect(trouble).toEqual([]);
});

test("a run that does not exist is said so", async ({ page, trouble }) => {
  await page.goto("/runs/00000000-0000-7000-8000-000000000000");
  await expect(page.getByText("Run not found")).toBeVisible();
  await page.goto("/nowhere/at/all");
  await expect(page.getByText("Page not found")).toBeVisible();
  expect(trouble.filter((one) => !/status of 404/.test(one))).toEqual([]);
});

test("a first visit says how to begin", async ({ page }) => {
  const server = await Server.make();
  try {
    await visit(page, server);
    const trouble = watch(page);
    await page.goto(`${server.url}/`);
    await expect(page.getByText("No runs yet")).toBeVisible();
    const steps = page.getByRole("region", { name: "Set up" }).getByRole("listitem");
    await expect(steps).toHaveCount(3);
    await expect(steps.nth(0)).toContainText("The demo model is active");
    await expect(steps.nth(2)).toContainText("moothall image build");
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("a run can be paused, resumed and stopped", async ({ page }) => {
  const server = await Server.make("1");
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    // Slow enough to see what a button shows until the run has changed.
    await page.route(/\/(pause|resume|cancel)$/, async (route) => {
      await new Promise((done) => setTimeout(done, 1000));
      await route.continue();
    });
    await page.goto(`${server.url}/runs/${run}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await expect(page.getByRole("button", { name: "Pausing…" })).toBeDisabled();
    await expect(page.getByText("Paused on request.", { exact: true })).toBeVisible({ timeout: 20_000 });
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(page.getByRole("button", { name: "Resuming…" })).toBeDisabled();
    await expect(page.getByRole("button", { name: "Pause" })).toBeVisible({ timeout: 20_000 });
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop permanently" }).click();
    await expect(page.getByRole("button", { name: "Stopping…" })).toBeDisabled();
    await expect(page.getByText("This run was stopped.")).toBeVisible({ timeout: 20_000 });
    await expect(page.getByRole("button", { name: "Resume" })).toHaveCount(0);
    await page.getByRole("link", { name: "Start again" }).click();
    await expect(page.getByRole("combobox", { name: "Ticker" })).toHaveValue("HLXI");
  } finally {
    await server.remove();
  }
});

test("settings name the keys and show none", async ({ page, trouble }) => {
  await page.goto("/settings");
  await expect(page.getByRole("region", { name: "Model" })).toContainText("demo");
  await expect(page.getByRole("region", { name: "Keys" })).toContainText("anthropic");
  await page.getByRole("group", { name: "Theme" }).getByRole("button", { name: "Dark" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  expect(trouble).toEqual([]);
});

test("a provider without a key is said so before anything starts", async ({ page }) => {
  const server = await Server.make("0", "without images", "none", { name: "anthropic/claude-haiku-5-5", config: "" });
  try {
    await visit(page, server);
    await page.goto(`${server.url}/`);
    await expect(page.getByText(/Newest filing/)).toBeVisible();
    await expect(page.getByRole("button", { name: "Start run" })).toBeDisabled();
    await expect(page.getByText("No API key for anthropic.")).toBeVisible();
    await expect(page.locator(".formproblem")).toContainText("ANTHROPIC_API_KEY");
    await expect(page.getByRole("button", { name: "Copy: moothall init" }).first()).toBeVisible();
    await page.goto(`${server.url}/settings`);
    await expect(page.getByRole("region", { name: "Keys" })).toContainText("not set");
  } finally {
    await server.remove();
  }
});

test("a page that is older than its server asks to be loaded again", async ({ page, server }) => {
  const run = await startRun(page, server, { moves: 1, rounds: 1, pause_after_moves: true });
  // A server of a later version, as far as this page can tell.
  const hello = JSON.stringify({ schema: 99, build: "9.0.0", run_id: run, head_seq: 1, terminal: false });
  await page.route(/\/events\?/, (route) =>
    route.fulfill({ contentType: "text/event-stream", body: `retry: 1000\n: ok\n\nevent: hello\ndata: ${hello}\n\n` }),
  );
  await page.goto(`/runs/${run}`);
  await expect(page.getByText("A new version is available.")).toBeVisible();
  await expect(page.locator("[data-link=outdated]")).toContainText("New version");
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await page.getByRole("button", { name: "Reload" }).click();
  await expect(page.locator("[data-link=live]")).toBeVisible();
});

test("a debate that is not as it should be says how, wherever its score is shown", async ({
  page,
  finished,
  trouble,
}) => {
  await page.route(`**/api/runs/${finished}`, async (route) => {
    const response = await route.fetch();
    const view = (await response.json()) as RunView;
    const score = (one: MoveView, at: number): MoveView =>
      at === 3 && one.scored ? { ...one, scored: { ...one.scored, degraded: [SHORT] } } : one;
    const consult = view.consult && { ...view.consult, moves: view.consult.moves.map(score) };
    await route.fulfill({ response, json: { ...view, consult } });
  });
  await page.goto(`/runs/${finished}?layer=3&move=m4`);
  const words = "D2 ended after round 2: the model did not answer";
  await expect(page.getByText(words).first()).toBeVisible();
  await page.goto(`/runs/${finished}/results`);
  await expect(page.getByText(words).first()).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
  expect(trouble).toEqual([]);
});
