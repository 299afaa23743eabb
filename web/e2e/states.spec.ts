import { expect, Server, startRun, test, visit, watch } from "./server";

test("a ticker that nobody knows is said so, and nothing starts", async ({ page, trouble }) => {
  await page.goto("/");
  await page.getByRole("combobox", { name: "Ticker" }).fill("ZZZZ9");
  await expect(page.getByText("No company with this ticker")).toBeVisible();
  await page.getByRole("button", { name: "Start run" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await expect(page).toHaveURL(/\/(\?.*)?$/);
  // The refusals themselves are what is tested here; a browser writes each of them into its console.
  expect(trouble.filter((one) => !/status of 4[0-9]{2}/.test(one))).toEqual([]);
});

test("a run that does not exist is said so", async ({ page, trouble }) => {
  await page.goto("/runs/00000000-0000-7000-8000-000000000000");
  await expect(page.getByText("There is no such run")).toBeVisible();
  await page.goto("/nowhere/at/all");
  await expect(page.getByText("There is no such page")).toBeVisible();
  expect(trouble.filter((one) => !/status of 404/.test(one))).toEqual([]);
});

test("a first visit says how to begin", async ({ page }) => {
  const server = await Server.make();
  try {
    await visit(page, server);
    const trouble = watch(page);
    await page.goto(`${server.url}/`);
    await expect(page.getByText("Nothing has been on trial yet")).toBeVisible();
    expect(trouble).toEqual([]);
  } finally {
    await server.remove();
  }
});

test("a run can be paused, resumed and stopped", async ({ page }) => {
  const server = await Server.make("0.4");
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.goto(`${server.url}/runs/${run}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await expect(page.getByText("Paused.", { exact: true })).toBeVisible({ timeout: 20_000 });
    await page.getByRole("button", { name: "Resume" }).click();
    await expect(page.getByRole("button", { name: "Pause" })).toBeVisible({ timeout: 20_000 });
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByRole("button", { name: "Stop for good" }).click();
    await expect(page.getByText("Somebody stopped this run.")).toBeVisible({ timeout: 20_000 });
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
