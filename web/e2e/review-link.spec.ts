// A review link in the browser: a reviewer who is not signed in opens the link of a real notice and decides once.
import { createServer } from "node:http";
import { sidewaysWidths } from "./routes";
import { expect, Server, test, watch } from "./server";

const MAKEFILE = "all:\n\techo one\n";

/** Receives notices, and hands out their bodies. */
async function receiver(): Promise<{ url: string; links: string[]; close: () => void }> {
  const links: string[] = [];
  const http = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += String(chunk);
    });
    request.on("end", () => {
      const { link } = JSON.parse(body) as { link?: string };
      if (link) links.push(link);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
  const address = http.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}/hook`, links, close: () => http.close() };
}

test("the holder of a link reads the draft and decides once, without signing in", async ({ page }, info) => {
  const trouble = watch(page);
  const { url, links, close } = await receiver();
  // The address of the server is not known yet, so the path of the link is opened on it.
  const config = `[notify]\nserver_url = "http://127.0.0.1:1"\n\n[notify.target.own]\nurl = "${url}"\n`;
  const server = await Server.make("0", "without images", "tokens", { name: "demo", config });
  try {
    server.write("Makefile", MAKEFILE);
    server.draft("Makefile", "all: build\n\techo one\n", "builds by default");
    await expect.poll(() => links.length).toBe(1);
    const { pathname, hash } = new URL(links[0] ?? "");
    expect(pathname).toBe("/review");
    const requests: string[] = [];
    // The fragment of the page itself stays in the browser.
    page.on("request", (request) => {
      const from = request.headers()["referer"];
      requests.push(`${request.url().split("#")[0]} ${from ? `from ${from}` : "without a referrer"}`);
    });
    await page.goto(`${server.url}${pathname}${hash}`);
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Makefile");
    await expect(page.locator("tr.added .text")).toHaveText("all: build");
    expect(page.url()).toBe(`${server.url}/review`);
    if (info.project.name === "desktop") expect(await sidewaysWidths(page)).toEqual([]);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("button", { name: "Approve this version" }).click();
    await expect(page.getByText("Your decision is recorded.")).toBeVisible();
    expect(server.read("Makefile")).toBe("all: build\n\techo one\n");
    // No request has the token in its address or as the page it came from.
    expect(requests.filter((line) => line.includes(hash.slice(1, 40)))).toEqual([]);
    expect(requests.filter((line) => line.includes("/api/review-link/"))).toEqual([
      `${server.url}/api/review-link/show without a referrer`,
      `${server.url}/api/review-link/decide without a referrer`,
    ]);
    expect(trouble).toEqual([]);
    await page.goto("about:blank");
    await page.goto(`${server.url}${pathname}${hash}`);
    await expect(page.getByText("This link cannot be used")).toBeVisible();
    if (info.project.name === "desktop") expect(await sidewaysWidths(page)).toEqual([]);
  } finally {
    close();
    await server.remove();
  }
});
