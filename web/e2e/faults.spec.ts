// Whatever happens to the connection, a page ends in the state of one that nobody disturbed.
import { connect, createServer, type Server as Net, type Socket } from "node:net";
import type { Page } from "@playwright/test";
import type { RunView } from "../src/gen/run";
import { waitingRun } from "./routes";
import { expect, resumeRun, Server, startRun, test, viewOf, visit, watch } from "./server";

test.describe.configure({ mode: "default" });
test.setTimeout(120_000);

/** Slow enough that a run is still going on when something happens to it. */
const PACE = "0.5";

/** What the page believes, against what the server says; who drives it and when are not events. */
async function agrees(page: Page, server: Server, run: string): Promise<void> {
  const plain = ({ about: _, ...view }: RunView) => view;
  const believed = await page.evaluate(() => window.moothallView?.());
  expect(believed).toBeDefined();
  expect(plain(believed as RunView)).toEqual(plain(await viewOf(page, server, run)));
}

const ended = (page: Page) => expect(page.locator("[data-link=ended]")).toBeVisible({ timeout: 90_000 });
const isLive = (page: Page) => expect(page.locator("[data-link=live]")).toBeVisible({ timeout: 30_000 });

/** Passes bytes on, and cuts a stream after so many events, again and again. */
async function cutter(port: number, every: number): Promise<{ net: Net; port: number; cuts: () => number }> {
  let cuts = 0;
  const net = createServer((inner) => {
    const outer = connect(port, "127.0.0.1");
    let events = 0;
    const end = (socket: Socket) => () => socket.destroy();
    inner.on("error", end(outer)).on("close", end(outer));
    outer.on("error", end(inner)).on("close", end(inner));
    // The server refuses a name that is not its own.
    const named = (bytes: Buffer) =>
      bytes.toString("latin1").replaceAll(`127.0.0.1:${inner.localPort}`, `127.0.0.1:${port}`);
    inner.on("data", (bytes) => outer.write(named(bytes), "latin1"));
    outer.on("data", (bytes) => {
      // After exactly so many events: a page that lags behind gets many in one piece.
      const text = bytes.toString("latin1");
      let cut = 0;
      while (events < every) {
        const next = text.indexOf("\nid: ", cut);
        if (next < 0) return void inner.write(bytes);
        cut = next + 1;
        events += 1;
      }
      inner.write(bytes.subarray(0, cut));
      cuts += 1;
      inner.destroy();
      outer.destroy();
    });
  });
  await new Promise<void>((done) => net.listen(0, "127.0.0.1", done));
  const address = net.address();
  if (typeof address !== "object" || !address) throw new Error("no port");
  return { net, port: address.port, cuts: () => cuts };
}

test("a stream that is cut every sixty events loses and doubles nothing", async ({ browser }) => {
  const server = await Server.make("0.02");
  const between = await cutter(Number(new URL(server.url).port), 60);
  try {
    const page = await (await browser.newContext()).newPage();
    const address = `http://127.0.0.1:${between.port}`;
    await page.goto(`${address}/settings`);
    const run = await waitingRun(page, server, { moves: 15 });
    await page.goto(`${address}/runs/${run}`);
    await isLive(page);
    await resumeRun(page, server, run);
    await ended(page);
    await agrees(page, server, run);
    expect(between.cuts()).toBeGreaterThan(3);
  } finally {
    between.net.close();
    await server.remove();
  }
});

test("a server that is killed and comes back is found again", async ({ page }) => {
  const server = await Server.make(PACE);
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.goto(`${server.url}/runs/${run}?layer=3`);
    await isLive(page);
    await expect(page.locator(".cell i.h").first()).toBeVisible({ timeout: 30_000 });
    await server.kill("SIGKILL");
    await expect(page.locator("[data-link=waiting]")).toBeVisible();
    await expect(page.locator("[data-stale]")).toBeAttached();
    await server.start();
    // Nobody loads the page again: it finds the server, and that nobody drives the run any more.
    await isLive(page);
    await page.getByRole("button", { name: "Resume" }).click({ timeout: 30_000 });
    await ended(page);
    await agrees(page, server, run);
  } finally {
    await server.remove();
  }
});

test("a server that stands still is noticed, and found again when it goes on", async ({ page }) => {
  const server = await Server.make(PACE);
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.clock.install();
    await page.goto(`${server.url}/runs/${run}`);
    await isLive(page);
    server.signal("SIGSTOP");
    // The watchdog barks after forty silent seconds; only the page's clock waits for them. Again if the page still had an
    // event to read, which starts them anew.
    const lost = page.locator("[data-link=waiting], [data-link=connecting]").first();
    await expect(async () => {
      await page.clock.fastForward(45_000);
      await expect(lost).toBeVisible({ timeout: 2_000 });
    }).toPass({ timeout: 20_000 });
    server.signal("SIGCONT");
    await ended(page);
    await agrees(page, server, run);
  } finally {
    server.signal("SIGCONT");
    await server.remove();
  }
});

test("a browser that is offline says so, and catches up when it is back", async ({ page, context }) => {
  const server = await Server.make(PACE);
  try {
    await visit(page, server);
    const run = await startRun(page, server);
    await page.goto(`${server.url}/runs/${run}?layer=3`);
    await isLive(page);
    await context.setOffline(true);
    const banner = page.getByRole("alert").filter({ hasText: "This browser is offline." });
    await expect(banner).toBeVisible();
    await expect(page.locator("[data-link=waiting]")).toContainText("Disconnected");
    await expect(page.locator("[data-stale]")).toBeAttached();
    // The run goes on without the page; there is something to catch up with.
    const seen = await page.evaluate(() => window.moothallView?.()?.as_of_seq ?? 0);
    const head = async () => ((await (await fetch(`${server.url}/api/runs/${run}`)).json()) as RunView).as_of_seq;
    await expect.poll(head, { timeout: 30_000 }).toBeGreaterThan(seen);
    await context.setOffline(false);
    await expect(banner).toHaveCount(0);
    await ended(page);
    await expect(page.locator("[data-stale]")).toHaveCount(0);
    await agrees(page, server, run);
  } finally {
    await server.remove();
  }
});

test("nine tabs follow one run, and a tenth page still loads", async ({ context }) => {
  const server = await Server.make(PACE);
  try {
    const first = await context.newPage();
    await visit(first, server);
    const run = await startRun(first, server);
    const pages: Page[] = [];
    for (let i = 0; i < 9; i += 1) {
      const page = i === 0 ? first : await context.newPage();
      const trouble = watch(page);
      await page.goto(`${server.url}/runs/${run}`, { timeout: 20_000 });
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible({ timeout: 20_000 });
      expect(trouble).toEqual([]);
      pages.push(page);
    }
    for (const page of pages) await ended(page);
    for (const page of pages) await agrees(page, server, run);
  } finally {
    await server.remove();
  }
});
