// Drafts in the browser: the real gate, real files, and a command line that decides at the same time.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, Server, test, watch } from "./server";

const MAKEFILE = "all:\n\techo one\n";

test.describe("drafts", () => {
  let server: Server;
  test.beforeEach(async () => {
    server = await Server.make();
    server.write("Makefile", MAKEFILE);
  });
  test.afterEach(async () => server.remove());

  test("a person reads a draft, approves it, and the file changes", async ({ page }) => {
    const trouble = watch(page);
    await page.goto(`${server.url}/drafts`);
    await expect(page.getByText("Nothing to review")).toBeVisible();
    // It appears by itself.
    server.draft("Makefile", "all: build\n\techo one\n", "builds by default");
    await page.getByRole("link", { name: /Makefile/ }).click();
    const title = page.getByRole("heading", { level: 1 });
    await expect(title).toHaveText("Makefile");
    await expect(title).toHaveCSS("font-family", /mono/i);
    await expect(page.locator("tr.added .text")).toHaveText("all: build");
    await expect(page.locator("tr.added mark")).toHaveText(" build");
    await expect(page.getByText("path.protected")).toBeVisible();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("Approved by ada.")).toBeVisible();
    await expect(page.getByRole("button", { name: "Reject" })).toHaveCount(0);
    expect(server.read("Makefile")).toBe("all: build\n\techo one\n");
    expect(trouble).toEqual([]);
  });

  test("keys choose, open and send back with a comment that the worker reads", async ({ page }) => {
    const id = server.draft("Makefile", "all: build\n");
    await page.goto(`${server.url}/drafts`);
    await expect(page.getByRole("link", { name: /Makefile/ })).toBeVisible();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await expect(page.locator("tr.added")).toHaveCount(1);
    await page.keyboard.press("a");
    await expect(page.getByLabel("Comment (optional)")).toBeFocused();
    await page.keyboard.press("Escape");
    await page.keyboard.press("c");
    await page.keyboard.type("keep the recipe");
    await page.keyboard.press("Control+Enter");
    await expect(page.getByText("Sent back by ada.")).toBeVisible();
    const told = JSON.stringify(server.run(["draft", "status", id]));
    expect(told).toContain("keep the recipe");
    expect(server.read("Makefile")).toBe(MAKEFILE);
  });

  test("a decision on the command line shows up by itself", async ({ page }) => {
    const id = server.draft("Makefile", "all: build\n");
    await page.goto(`${server.url}/drafts/${id}`);
    await expect(page.getByRole("button", { name: "Approve" })).toBeVisible();
    const { seal } = server.run(["review", "show", id]);
    server.run(["review", "reject", id, "--if-match", String(seal), "--reason", "not now"]);
    await expect(page.getByText("Rejected by ada.")).toBeVisible();
    await expect(page.getByText("not now")).toBeVisible();
    await expect(page.getByRole("button", { name: "Approve" })).toHaveCount(0);
  });

  test("what is written again while somebody reads is not what they decide on", async ({ page }) => {
    const id = server.draft("Makefile", "all: build\n");
    await page.goto(`${server.url}/drafts/${id}`);
    await expect(page.locator("tr.added .text")).toHaveText("all: build");
    server.run(["draft", "write", id, "--file", "-"], "all: harm\n");
    server.run(["draft", "submit", id]);
    await expect(page.getByText("The draft changed while you were reading.")).toBeVisible();
    await expect(page.locator("tr.added .text")).toHaveText("all: build");
    await expect(page.getByRole("button", { name: "Approve" })).toHaveCount(0);
    await page.getByRole("button", { name: "Show the current version" }).click();
    await expect(page.locator("tr.added .text")).toHaveText("all: harm");
    await expect(page.getByRole("button", { name: "Approve" })).toBeVisible();
  });

  test("a file that changed meanwhile is a conflict, and nothing is written", async ({ page }) => {
    const id = server.draft("Makefile", "all: build\n");
    server.write("Makefile", "mine:\n");
    await page.goto(`${server.url}/drafts/${id}`);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("Makefile changed since the draft was made.")).toBeVisible();
    expect(server.read("Makefile")).toBe("mine:\n");
  });

  test("a draft cannot draw over itself, nor bring markup along", async ({ page }) => {
    const trouble = watch(page);
    const text = "all:\n\techo \u202eevil\u001b[2J <img src=x onerror=alert(1)>\n";
    const id = server.draft("Makefile", text, "<b>harmless</b> \u202etxt");
    await page.goto(`${server.url}/drafts/${id}`);
    await expect(page.locator("tr.added .text")).toContainText("\\u{202e}evil\\u{1b}[2J <img src=x onerror=alert(1)>");
    await expect(page.locator(".draftsays")).toHaveText("<b>harmless</b> \\u{202e}txt");
    await expect(page.locator("main img, main b b")).toHaveCount(0);
    expect(await page.locator("main").textContent()).not.toContain("\u202e");
    expect(trouble).toEqual([]);
  });

  test("the journal says that it holds, and where it was changed", async ({ page }) => {
    const id = server.draft("Makefile", "all: build\n");
    await page.goto(`${server.url}/audit`);
    await expect(page.getByText(/^Audit log verified: \d+ records, \d+ signed checkpoints?\.$/)).toBeVisible();
    await expect(page.getByRole("listitem")).toHaveCount(4);
    await page
      .getByRole("link", { name: id.slice(0, 10) })
      .first()
      .click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Makefile");
    const journal = find(server.path("."), "000001.ndjson");
    const bytes = readFileSync(journal, "utf8");
    writeFileSync(journal, bytes.replace('"kind":"written"', '"kind":"writteN"'));
    await page.goto(`${server.url}/audit`);
    await expect(page.getByText("The audit log is not valid.")).toBeVisible();
  });
});

function find(folder: string, name: string): string {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const found = files.find((file) => file.endsWith(name));
  if (!found) throw new Error(`there is no ${name}`);
  return join(folder, found);
}
