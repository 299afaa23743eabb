// The real program, one for each worker, with a data folder of its own. Tests may stop, kill and start it again.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test as base, expect, type Page } from "@playwright/test";
import type { RunView } from "../src/gen/run";
import { slowdown } from "./slowdown";

export { expect };

/** Who may sign in: everyone on this machine, or only with the printed link or an access token. */
type Auth = "none" | "link" | "tokens";

export class Server {
  readonly url: string;
  private readonly port: number;
  private readonly folder: string;
  private readonly pace: string;
  private readonly auth: Auth;
  private readonly model: string;
  private child: ChildProcess | undefined;
  private printed = "";
  private why = "";

  private constructor(port: number, pace: string, auth: Auth, model: string) {
    this.port = port;
    this.pace = pace;
    this.auth = auth;
    this.model = model;
    this.url = `http://127.0.0.1:${port}`;
    this.folder = mkdtempSync(join(tmpdir(), "moothall-e2e-"));
    mkdirSync(this.path("ws"));
  }

  /** A place below the server's own folder; `ws` is the workspace whose drafts it shows. */
  path(name: string): string {
    return join(this.folder, name);
  }

  /** Nothing of the machine's own settings, and no variable that the program does not know. */
  private get env(): NodeJS.ProcessEnv {
    const folder = this.folder;
    const own = {
      HOME: folder,
      MOOTHALL_DATA_DIR: folder,
      MOOTHALL_ISOLATION__BUILD: "false",
      NO_COLOR: "1",
      USER: "ada",
    };
    return { PATH: process.env["PATH"], OPENAI_API_KEY: KEY, ...own };
  }

  /** Runs a command of the program on the workspace, and gives back what it prints as JSON. */
  run(args: string[], input = ""): Record<string, unknown> {
    const program = process.env["MOOTHALL_BIN"] ?? "";
    const all = [...args, "--workspace", this.path("ws"), "--json"];
    const ran = spawnSync(program, all, { env: this.env, input, encoding: "utf8" });
    if (ran.stdout === "") throw new Error(`moothall ${args.join(" ")}: ${ran.status} ${ran.stderr}`);
    return JSON.parse(ran.stdout) as Record<string, unknown>;
  }

  /** Runs a command of the program, and gives back what it prints. */
  text(args: string[]): string {
    const ran = spawnSync(process.env["MOOTHALL_BIN"] ?? "", args, { env: this.env, encoding: "utf8" });
    if (ran.status !== 0) throw new Error(`moothall ${args.join(" ")}: ${ran.status} ${ran.stderr}`);
    return ran.stdout;
  }

  /** A new access token with this scope. */
  token(scope: string): string {
    const program = process.env["MOOTHALL_BIN"] ?? "";
    const made = spawnSync(program, ["token", "create", "--scope", scope], { env: this.env, encoding: "utf8" });
    if (made.status !== 0) throw new Error(`moothall token create: ${made.stderr}`);
    return made.stdout.trim();
  }

  /** Copies a finished run this many times, each a minute older than the one before. */
  copyRun(run: string, times: number): void {
    const db = new DatabaseSync(this.path("moothall.db"));
    const columns = (db.prepare("PRAGMA table_info(runs)").all() as { name: string }[])
      .map((column) => column.name)
      .filter((name) => !["run", "run_id", "created_at_ms"].includes(name))
      .join(", ");
    const copy = db.prepare(
      `INSERT INTO runs (run_id, created_at_ms, ${columns})
       SELECT ?, created_at_ms - ?, ${columns} FROM runs WHERE run_id = ?`,
    );
    db.exec("BEGIN IMMEDIATE");
    for (let i = 1; i <= times; i += 1) {
      const id = `00000000-0000-7000-8000-${i.toString(16).padStart(12, "0")}`;
      copy.run(id, i * 60_000, run);
    }
    db.exec("COMMIT");
    db.close();
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.path("ws"), file), text);
  }

  read(file: string): string {
    return readFileSync(join(this.path("ws"), file), "utf8");
  }

  /** A draft of a file, handed in: what is protected needs review. */
  draft(file: string, text: string, summary = "as the task says"): string {
    const { draft_id } = this.run(["draft", "request", file, "--task", "t1", "--new"]);
    const id = String(draft_id);
    this.run(["draft", "write", id, "--file", "-"], text);
    this.run(["draft", "submit", id, "--summary", summary]);
    return id;
  }

  static async make(
    pace = "0",
    images: "with images" | "without images" = "without images",
    auth: Auth = "none",
    model: { name: string; config: string } = { name: "demo", config: "" },
  ): Promise<Server> {
    const server = new Server(await freePort(), pace, auth, model.name);
    mkdirSync(server.path(".config/moothall"), { recursive: true });
    writeFileSync(server.path(".config/moothall/moothall.toml"), model.config);
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
    const options = [
      "serve",
      "--auth",
      this.auth,
      "--addr",
      `127.0.0.1:${this.port}`,
      "--model",
      this.model,
      "--pace",
      this.pace,
      "--workspace",
      this.path("ws"),
    ];
    this.printed = "";
    const child = spawn(program, options, {
      env: this.env,
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

/** The key that servers of tests ask providers with. */
export const KEY = "sk-nobody-may-see-this-0123456789";

/** A provider that answers every call like this, for as long as somebody changes nothing. */
export class Provider {
  status = 200;
  text = "";
  /** How many calls it answers before it refuses the key. */
  credit = Number.POSITIVE_INFINITY;
  private constructor(
    private readonly port: number,
    private readonly close: () => void,
  ) {}

  static async make(): Promise<Provider> {
    let provider: Provider;
    const http = createHttpServer((request, response) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on("end", () => {
        const message = { role: "assistant", content: provider.text };
        // Of a provider that reads less than it was sent, no answer is taken.
        const read = Math.ceil(bytes / 4);
        const usage = { prompt_tokens: read, completion_tokens: 9, total_tokens: read + 9 };
        const answer = { id: "x", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }], usage };
        // As careless as a provider can be: it says the key aloud.
        const words = `incorrect API key provided: ${request.headers.authorization}`;
        const refusal = { error: { message: words, type: "invalid_request_error" } };
        const status = provider.credit > 0 ? provider.status : 401;
        provider.credit -= 1;
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(status === 200 ? answer : refusal));
      });
    });
    await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
    const address = http.address();
    if (typeof address !== "object" || !address) throw new Error("no port");
    provider = new Provider(address.port, () => http.close());
    return provider;
  }

  /** What a server is started with that asks this one. */
  get model(): { name: string; config: string } {
    const lab = `[provider.openai]\nbase_url = "http://127.0.0.1:${this.port}/v1"\n`;
    return { name: "openai/gpt-4.1-mini", config: `${lab}\n[retry]\nfirst_delay = "1ms"\nmax_delay = "2ms"\n` };
  }

  stop(): void {
    this.close();
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
  page: async ({ page }, use) => {
    if (slowdown > 1) {
      const devtools = await page.context().newCDPSession(page);
      await devtools.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    }
    await use(page);
  },
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

/** Starts a run that ends soon: without a panel, unless `more` asks for one. */
export async function startRun(page: Page, server: Server, more: Record<string, unknown> = {}): Promise<string> {
  const response = await page.request.post(`${server.url}/api/runs`, {
    headers: { origin: server.url },
    data: { workflow: "consult", ticker: "HLXI", rounds: 3, verdict: "off", ...more },
  });
  expect(response.status(), await response.text()).toBe(201);
  return ((await response.json()) as { run_id: string }).run_id;
}

/** Resumes a run whose debates wait for the test. */
export async function resumeRun(page: Page, server: Server, run: string): Promise<void> {
  const path = `${server.url}/api/runs/${run}/resume`;
  const response = await page.request.post(path, { headers: { origin: server.url }, data: {} });
  expect(response.status(), await response.text()).toBe(202);
}

export async function viewOf(page: Page, server: Server, run: string): Promise<RunView> {
  return (await page.request.get(`${server.url}/api/runs/${run}`)).json() as Promise<RunView>;
}

export async function untilOver(page: Page, server: Server, run: string, timeout = 45_000): Promise<void> {
  await expect
    .poll(async () => (await viewOf(page, server, run)).status.state, { timeout, message: `run ${run} ends` })
    .toBe("complete");
}
