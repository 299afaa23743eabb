// Review by hunk in the browser, with the real gate and real files.
import { AxeBuilder } from "@axe-core/playwright";
import { expect, Server, test, watch } from "./server";

const lines = (changed: Record<number, string> = {}) =>
  Array.from({ length: 40 }, (_, at) => `${changed[at] ?? `line ${at}`}\n`).join("");

test.describe("hunks", () => {
  let server: Server;
  test.beforeEach(async () => {
    server = await Server.make();
    server.write("Makefile", lines());
  });
  test.afterEach(async () => server.remove());

  test("a person rejects one hunk, comments on a line, and the rest is applied", async ({ page }) => {
    const trouble = watch(page);
    const id = server.draft("Makefile", lines({ 2: "good one", 20: "bad one", 38: "good two" }));
    await page.goto(`${server.url}/drafts/${id}`);
    await expect(page.getByText("No comments yet")).toBeVisible();
    // Everything with the keyboard.
    await page.getByRole("button", { name: "Comment on hunk 2" }).focus();
    await page.keyboard.press("Enter");
    await expect(page.getByLabel("Line", { exact: true })).toBeFocused();
    await page.keyboard.press("Tab");
    await page.keyboard.type("why this?");
    await page.keyboard.press("Control+Enter");
    await expect(page.locator(".linecomment")).toContainText("why this?");
    await page.getByRole("group", { name: "Hunk 2" }).getByRole("button", { name: "Reject" }).focus();
    await page.keyboard.press("Enter");
    await expect(page.getByRole("button", { name: /Approve 2 of 3 hunks/ })).toBeVisible();
    const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
    expect(violations.map((one) => one.id)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
    await page.getByRole("button", { name: /Approve 2 of 3 hunks/ }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("Approved with changes by ada.")).toBeVisible();
    expect(server.read("Makefile")).toBe(lines({ 2: "good one", 38: "good two" }));
    const told = JSON.stringify(server.run(["draft", "status", id]));
    expect(told).toContain("why this?");
    expect(trouble).toEqual([]);
  });

  test("a person edits the content, and the gate judges their version", async ({ page }) => {
    const id = server.draft("Makefile", lines({ 2: "good one" }));
    await page.goto(`${server.url}/drafts/${id}`);
    await page.getByRole("button", { name: "Edit Makefile" }).click();
    const field = page.getByLabel("Your version of Makefile");
    await expect(field).toHaveValue(lines({ 2: "good one" }));
    await field.fill("<<<<<<< a\n=======\n>>>>>>> b\n");
    await page.getByRole("button", { name: /Approve your version/ }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("The gate rejects the result.")).toBeVisible();
    expect(server.read("Makefile")).toBe(lines());
    await page.getByRole("button", { name: "Back" }).click();
    await field.fill(lines({ 2: "my own" }));
    const { violations } = await new AxeBuilder({ page }).setLegacyMode().analyze();
    expect(violations.map((one) => one.id)).toEqual([]);
    await page.getByRole("button", { name: /Approve your version/ }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("Approved with changes by ada.")).toBeVisible();
    expect(server.read("Makefile")).toBe(lines({ 2: "my own" }));
  });

  test("hunks of a version that was replaced cannot be approved", async ({ page }) => {
    const id = server.draft("Makefile", lines({ 2: "good one", 20: "bad one" }));
    await page.goto(`${server.url}/drafts/${id}`);
    await page.getByRole("group", { name: "Hunk 2" }).getByRole("button", { name: "Reject" }).click();
    server.run(["draft", "write", id, "--file", "-"], lines({ 2: "harm", 20: "bad one" }));
    server.run(["draft", "submit", id]);
    await expect(page.getByText("The draft changed while you were reading.")).toBeVisible();
    await expect(page.getByRole("button", { name: /Approve/ })).toHaveCount(0);
    await page.getByRole("button", { name: "Show the current version" }).click();
    // The choices were about the other version.
    const say = page.locator(".saybar").getByRole("button", { name: "Approve", exact: true });
    await expect(say).toBeVisible();
    await expect(page.getByRole("group", { name: "Hunk 2" }).getByRole("button", { name: "Approve" })).toHaveAttribute(
      "aria-pressed",
      "true",
    );
  });
});
