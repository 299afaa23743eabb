import { expect, Server, test } from "./server";

const PLAN = `# Acme Pumps

Acme Pumps makes pumps for breweries and dairies in one plant near the river.

## Prices

We raised list prices by 4% in May and lost two dealers in the north.
`;
const SALES = 'Year,Revenue\n2024,"$12,900,000"\n2025,"$14,100,000"\n';

function file(name: string, text: string) {
  return { name, mimeType: "application/octet-stream", buffer: Buffer.from(text) };
}

test("a private company is examined from documents by a committee of several models, and forked", async ({
  page,
  server,
  trouble,
}) => {
  const committee = server
    .text(["committee", "show"])
    .replace('name = "board"', 'name = "mine"')
    .replace(/^rounds = \d+/m, "rounds = 2")
    .replace('id = "D2"', 'id = "D2"\nmodel = "demo/second"');
  await page.goto("/");
  await page.getByLabel("Source data").selectOption("files");
  await page.getByRole("textbox", { name: "Company name" }).fill("Acme Pumps");

  // Documents are listed and can be removed.
  const documents = page.getByLabel("Documents", { exact: true });
  await documents.setInputFiles([file("plan.md", PLAN), file("sales.csv", SALES), file("old.txt", "Old.")]);
  const chosen = page.getByRole("list", { name: "Documents: chosen" }).getByRole("listitem");
  await expect(chosen).toHaveCount(3);
  await page.getByRole("button", { name: "Remove old.txt" }).click();
  await expect(chosen).toHaveCount(2);

  // A mistake in the committee file is shown next to it, before anything starts.
  const committees = page.getByLabel("Committee file", { exact: true });
  await committees.setInputFiles(file("mine.toml", 'name = "mine"\nrouns = 2\n'));
  const group = page.locator(".files").filter({ has: committees });
  await expect(group.getByRole("alert")).toContainText("unknown key rouns");
  await committees.setInputFiles(file("mine.toml", committee));
  await expect(group.getByRole("alert")).toHaveCount(0);

  await page.getByLabel("Verdict", { exact: true }).selectOption("off");
  await page.getByLabel("Brief").fill("Shall we grow abroad?");
  await page.getByRole("button", { name: "3", exact: true }).click();
  await expect(page.getByText(/model calls \(demo model\)/)).toBeVisible();
  const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  expect(isTooWide).toBe(false);
  await page.getByRole("button", { name: "Start run" }).click();

  await expect(page).toHaveURL(/\/runs\/[0-9a-f-]{36}/);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Acme Pumps");
  await expect(page.locator("[data-link=ended]")).toBeVisible({ timeout: 45_000 });
  await page.getByRole("link", { name: "Results", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Acme Pumps");
  await expect(page.locator(".card").first()).toBeVisible();
  await expect(page.getByText("demo/second (D2)")).toBeVisible();

  // A fork with another critic reuses the moves and can be compared with its parent.
  const parent = page.url();
  await page.goto(parent.replace(/\/results.*/, ""));
  await page.getByRole("button", { name: "Fork", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Fork this run" });
  await dialog.getByLabel("Model of the critic").fill("demo/critic");
  await dialog.getByRole("button", { name: "Start fork" }).click();
  await expect(page.getByText("critic: demo → demo/critic")).toBeVisible();
  await expect(page).not.toHaveURL(parent.replace(/\/results.*/, ""));
  await expect(page.locator("[data-link=ended]")).toBeVisible({ timeout: 45_000 });
  await page.getByRole("link", { name: "Compare the results" }).click();
  await expect(page).toHaveURL(/results\?vs=/);
  await expect(page.locator(".dl").first()).toHaveText(/±0|[+−][0-9]+/);
  // The browser reports the refused committee file, too.
  expect(trouble.filter((one) => !one.includes("422"))).toEqual([]);
});

test("a file that the server refuses is named next to the field", async ({ page }) => {
  await page.goto("/?source=files");
  await page.getByRole("textbox", { name: "Company name" }).fill("Acme Pumps");
  await page.getByRole("button", { name: "Start run" }).click();
  const documents = page.getByLabel("Documents", { exact: true });
  const group = page.locator(".files").filter({ has: documents });
  await expect(group.getByRole("alert")).toContainText("missing documents");
  await documents.setInputFiles(file("tool.exe", "x"));
  await page.getByRole("button", { name: "Start run" }).click();
  await expect(group.getByRole("alert")).toContainText("unsupported type of document tool.exe");
});

test("a program is started with its contract and files", async ({ page }) => {
  const server = await Server.make("0", "with images");
  await page.goto(`${server.url}/tasks`);
  await page.getByLabel("Task", { exact: true }).fill("Print the sum");
  await page.getByText("Options", { exact: true }).click();
  await page.getByLabel("Input files", { exact: true }).setInputFiles(file("data.csv", "1,2\n"));
  await page.getByLabel("Expected output").selectOption("schema");
  await page.getByLabel("JSON schema").fill("{");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("The schema is not valid JSON.");
  await page.getByLabel("JSON schema").fill('{"type": "integer"}');
  const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/api/runs"));
  await page.getByRole("button", { name: "Start", exact: true }).click();
  expect((await sent).postDataJSON()).toEqual({
    workflow: "reflexion",
    task: "Print the sum",
    attempts: 3,
    inputs: [{ name: "data.csv", base64: "MSwyCg==" }],
    expect_schema: { type: "integer" },
  });
  await server.remove();
});
