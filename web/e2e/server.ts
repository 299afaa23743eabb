// The real program, one for each worker, with a data folder of its own. Tests may stop, kill and start it again.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as base, expect, type Page } from "@playwright/test";
import type { RunView } from "../src/gen/run";

export { expect };

/** Whom the server lets in: everybody on this machine, or who has the link that it prints. */
type Auth = "none" | "link";

export class Server {
  readonly url: string;
  private readonly port: number;
  private readonly folder: string;
  private readonly pace: string;
  private readonly auth: Auth;
  private child: ChildProcess | undefined;
  private printed = "";
  private why = "";

  private constructor(port: number, pace: string, auth: Auth) {
    this.port = port;
    this.pace = pace;
    this.auth = auth;
    this.url = `http://127.0.0.1:${port}`;
    this.folder = mkdtempSync(join(tmpdir(), "moothall-e2e-"));
  }

  static async make(
    pace = "0",
    images: "with images" | "without images" = "without images",
    auth: Auth = "none",
  ): Promise<Server> {
    const server = new Server(await freePort(), pace, auth);
    if (images === "with images") {
      const built = process.env["MOOTHALL_TEST_IMAGES"];
      if (!built) throw new Error("MOOTHALL_TEST_IMAGES names no folder of images");
      symlinkSync(built, join(server.folder, "images"));
    }
    await server.start();
    return server;
  }

  async start(): Promise<void> {
    const program = process.env["MOOTHALL_BIN"];
    if (!program) throw new Error("MOOTHALL_BIN names no program; run `cargo xtask web --e2e`");
    // Nothing of the machine's own settings, and no variable that the program does not know.
    const env = { PATH: process.env["PATH"], HOME: this.folder, MOOTHALL_DATA_DIR: this.folder, NO_COLOR: "1" };
    const options = [
      "serve",
      "--auth",
      this.auth,
      "--addr",
      `127.0.0.1:${this.port}`,
      "--model",
      "demo",
      "--pace",
      this.pace,
    ];
    this.printed = "";
    const child = spawn(program, options, {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout?.on("data", (bytes) => {
      this.printed += String(bytes);
    });
    child.stderr?.on("data", (bytes) => {
      this.printed += String(bytes);
    });
    this.child = child;
    const until = Date.now() + 30_000;
    while (!(await this.answers())) {
      if (child.exitCode !== null || Date.now() > until)
        throw new Error(`the server does not answer: ${this.why}\n${this.printed}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  /** The link that signs in once. */
  async link(): Promise<string> {
    const found = () => /http\S+\/login\?code=\S+/.exec(this.printed)?.[0];
    await expect.poll(found, { message: "the server prints a link" }).toBeDefined();
    return found() ?? "";
  }

  private async answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/healthz`)).ok;
    } catch (error) {
      this.why = String(error instanceof Error ? (error.cause ?? error) : error);
      return false;
    }
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  async kill(name: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGCONT");
    child.kill(name);
    await gone;
  }

  async remove(): Promise<void> {
    await this.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.on("error", fail);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (typeof address === "object" && address ? done(address.port) : fail(new Error("no port"))));
    });
  });
}

/** What went wrong in a page without anybody asking: errors of the console and of the policy. */
export function watch(page: Page): string[] {
  const found: string[] = [];
  page.on("pageerror", (error) => found.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") found.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (hostname !== "127.0.0.1" && protocol !== "blob:" && protocol !== "data:")
      found.push(`leaves: ${request.url()}`);
  });
  return found;
}

interface Made {
  server: Server;
  /** A finished consultation of fifteen moves and three rounds. */
  finished: string;
}

interface Each {
  /** A page that is signed in, and what went wrong in it. */
  trouble: string[];
}

export const test = base.extend<Each, Made>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the names of fixtures from here
    async ({}, use) => {
      const server = await Server.make();
      await use(server);
      await server.remove();
    },
    { scope: "worker" },
  ],
  finished: [
    async ({ server, browser }, use) => {
      const context = await browser.newContext();
      const page = await context.newPage();
      await visit(page, server);
      const run = await startRun(page, server);
      await untilOver(page, server, run);
      await context.close();
      await use(run);
    },
    { scope: "worker" },
  ],
  baseURL: async ({ server }, use) => use(server.url),
  trouble: async ({ page, server }, use) => {
    await visit(page, server);
    const trouble = watch(page);
    await use(trouble);
  },
});

/** The first visit of a browser. */
export async function visit(page: Page, server: Server): Promise<void> {
  await page.goto(`${server.url}/settings`);
}

export async function startRun(page: Page, server: Server, more: Record<string, unknown> = {}): Promise<string> {
  const response = await page.request.post(`${server.url}/api/runs`, {
    headers: { origin: server.url },
    data: { workflow: "consult", ticker: "HLXI", rounds: 3, ...more },
  });
  expect(response.status(), await response.text()).toBe(201);
  return ((await response.json()) as { run_id: string }).run_id;
}

export async function viewOf(page: Page, server: Server, run: string): Promise<RunView> {
  return (await page.request.get(`${server.url}/api/runs/${run}`)).json() as Promise<RunView>;
}

export async function untilOver(page: Page, server: Server, run: string, timeout = 45_000): Promise<void> {
  await expect
    .poll(async () => (await viewOf(page, server, run)).status.state, { timeout, message: `run ${run} ends` })
    .toBe("complete");
}
