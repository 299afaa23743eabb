import { expect, test } from "./server";

test("a run can be read without a mouse", async ({ page, trouble, finished }) => {
  await page.goto(`/runs/${finished}`);
  await expect(page.locator("[data-move]")).toHaveCount(15);
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  for (const layer of [0, 1, 2, 4, 3]) {
    await page.keyboard.press(String(layer));
    await expect(page).toHaveURL(new RegExp(`layer=${layer}`));
  }
  await page.goto(`/runs/${finished}?layer=3&move=m1`);
  await expect(page.locator(".turn").first()).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.locator('[data-move="m2"]')).toBeFocused();
  await page.keyboard.press("j");
  await expect(page.locator(".dhd")).toContainText("m3");
  await page.keyboard.press("k");
  await expect(page.locator(".dhd")).toContainText("m2");
  await page.getByRole("tab").first().focus();
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("tab", { selected: true })).toContainText("Operations");
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(/layer=all/);
  await page.keyboard.press("r");
  await expect(page).toHaveURL(/results/);
  expect(trouble).toEqual([]);
});

test("keys pressed before the page is drawn again all count", async ({ page, finished }) => {
  await page.goto(`/runs/${finished}?layer=3&move=m1`);
  await expect(page.locator(".turn").first()).toBeVisible();
  await page.evaluate(() => {
    for (const key of ["j", "j", "j", "k", "j"])
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  });
  await expect(page.locator(".dhd")).toContainText("m4");
  await expect(page.locator('[data-move="m4"]')).toBeFocused();
});

test("search finds runs and pages", async ({ page, trouble, finished }) => {
  await page.goto("/");
  // Keys pressed before a page stands are nobody's.
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const search = page.getByRole("combobox", { name: "Search runs and pages" });
  await page.keyboard.press("Control+k");
  await search.fill("sett");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
  await expect(search).toBeHidden();
  await expect(page).toHaveURL(/settings/);
  await page.keyboard.press("Control+k");
  await search.fill("hlxi");
  await expect(page.getByRole("option").first()).toContainText("HLXI");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/runs\//);
  expect(finished).toMatch(/^[0-9a-f-]{36}$/);
  expect(trouble).toEqual([]);
});

test("single keys can be turned off", async ({ page, finished }) => {
  await page.goto("/settings");
  await page.getByRole("group", { name: "Single-key shortcuts" }).getByRole("button", { name: "Off" }).click();
  await page.goto(`/runs/${finished}?layer=3`);
  await expect(page.locator("[data-move]")).toHaveCount(15);
  await page.keyboard.press("0");
  await expect(page).toHaveURL(/layer=3/);
});
