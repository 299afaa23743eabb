import { expect, Server, test, watch } from "./server";

test("an access token signs in through the form, and a wrong one is refused on the same page", async ({ page }) => {
  const server = await Server.make("0", "without images", "tokens");
  try {
    await page.goto(`${server.url}/`);
    await expect(page).toHaveURL(/\/login$/);
    const token = page.getByLabel("Token");
    await token.fill(`moot_${"0".repeat(64)}`);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText("This token is unknown, expired or revoked.")).toBeVisible();
    await token.fill(server.token("run"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page).toHaveURL(`${server.url}/`);
    await expect(page.getByRole("combobox", { name: "Ticker" })).toBeVisible();
  } finally {
    await server.remove();
  }
});

test("the printed link lets in once, and whoever came in starts a run", async ({ page, browser }) => {
  const server = await Server.make("0", "without images", "link");
  try {
    await page.goto(`${server.url}/`);
    await expect(page).toHaveURL(/\/login$/);
    const link = await server.link();
    const trouble = watch(page);
    await page.goto(link);
    // The code is gone from the address.
    await expect(page).toHaveURL(`${server.url}/`);
    await page.getByRole("combobox", { name: "Ticker" }).fill("HLXI");
    await page.getByRole("button", { name: "Start run" }).click();
    await expect(page).toHaveURL(/\/runs\//);
    await expect(page.getByRole("heading", { name: /Helix Instruments/ })).toBeVisible();
    expect(trouble).toEqual([]);

    const other = await (await browser.newContext()).newPage();
    await other.goto(link);
    await expect(other.getByText(/Acquire one small firm/)).toHaveCount(0);
    expect((await other.request.get(`${server.url}/api/runs`)).status()).toBe(401);
  } finally {
    await server.remove();
  }
});
