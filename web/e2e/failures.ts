import type { Reporter, TestCase, TestResult } from "@playwright/test/reporter";

/** Says last why tests failed, because the end of a long log is read first, and is sometimes all that is kept. */
export default class Failures implements Reporter {
  readonly #failures: string[] = [];

  onTestEnd(test: TestCase, result: TestResult): void {
    if (result.status === test.expectedStatus || result.status === "skipped") return;
    const place = `${test.location.file.split("/").at(-1)}:${test.location.line}`;
    const reason = result.errors.map((error) => (error.message ?? "").slice(0, 700)).join("\n");
    this.#failures.push(`${place} ${test.titlePath().filter(Boolean).join(" › ")}\n${reason}`);
  }

  onEnd(): void {
    for (const failure of this.#failures.slice(0, 3)) process.stdout.write(`\n${failure}\n`);
  }
}
