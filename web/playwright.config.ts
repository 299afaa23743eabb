import { existsSync } from "node:fs";
import { defineConfig, devices } from "@playwright/test";
import { slowdown } from "./e2e/slowdown";

// Chromium without windows first: the same engine for three quarters of the CPU time.
const chosen = process.env["CHROMIUM"];
const browsers = chosen ? [chosen] : ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const chromium = browsers.find((path) => existsSync(path));
if (!chromium)
  throw new Error(`no browser at ${browsers.join(" or ")}; install it: apt-get install chromium-headless-shell`);

const args = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  workers: 2,
  fullyParallel: false,
  forbidOnly: true,
  retries: 0,
  timeout: 60_000 * slowdown,
  expect: { timeout: 15_000 },
  reporter: [["list"], ["./e2e/failures.ts"]],
  use: {
    reducedMotion: "reduce",
    launchOptions: { executablePath: chromium, args },
    screenshot: "only-on-failure",
    // Actions and requests only: pictures and copies of the page cost every test time, and are dropped if it passes.
    trace: { mode: "retain-on-failure", screenshots: false, snapshots: false, sources: false },
  },
  projects: [
    { name: "desktop", use: { viewport: { width: 1440, height: 900 } } },
    {
      name: "phone",
      // What needs a wide screen, has nothing to do with one, or sets both sizes itself.
      testIgnore: [/faults\.spec/, /keyboard\.spec/, /verdict\.spec/],
      use: { ...devices["Pixel 7"], viewport: { width: 390, height: 844 } },
    },
  ],
});
