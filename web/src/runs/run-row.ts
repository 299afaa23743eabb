// What a row of a run shows. Everything is in the list itself: rows make no requests.
import type { RunSummary } from "../gen/api";
import { capital, plain } from "../model/format";
import type { RunBar } from "../viz/score-bars";

export interface RunHeading {
  /** Ticker, or the kind of run. */
  code: string;
  name: string;
}

export function headingOf(run: RunSummary): RunHeading {
  const { consult } = run;
  if (consult) {
    const company = plain(consult.company ?? "").replace(/ \(fictional\)$/, "");
    return { code: plain(consult.ticker) || "Private", name: company };
  }
  if (run.workflow === "consult") return { code: plain(run.title).split(/[ :]/)[0] ?? "", name: "" };
  return { code: "Task", name: plain(run.model) };
}

const STAGES = ["Reading filings", "Drawing inferences", "Proposing moves", "Debating", "Ranking"];

/** The result of a run, or how far it is. */
export function outcomeOf(run: RunSummary): { line: string; detail: string } {
  const { consult } = run;
  if (!consult) return { line: plain(run.title), detail: plain(run.detail ?? "") };
  const scored = consult.moves.filter((one) => one.score !== null).length;
  const progress = `${scored} of ${consult.expected_moves} moves scored`;
  if (consult.panel && run.state === "finished") {
    const { headline, warning, failed } = consult.panel;
    const sign = failed ? "✗" : "!";
    return {
      line: capital(plain(headline)),
      detail: warning ? `${sign} ${plain(warning)}` : "Judged by a blind panel",
    };
  }
  if (consult.best) {
    const { title, score, out_of, spread } = consult.best;
    const nothing = consult.do_nothing === null ? "" : `, doing nothing ${consult.do_nothing}`;
    return { line: plain(title), detail: `${score} / ${out_of}, score range ${spread}${nothing}` };
  }
  switch (run.state) {
    case "paused":
      return { line: plain(run.detail ?? "Paused"), detail: progress };
    case "failed":
      return { line: plain(run.detail ?? "Failed"), detail: "Completed answers are kept" };
    case "cancelled":
      return { line: "Stopped by a user", detail: progress };
    case "finished":
      return { line: "No move is recommended", detail: progress };
    case "running": {
      const live = run.driven ? consult.moves.filter((one) => one.in_debate).length : 0;
      const line = run.driven ? (STAGES[consult.stage ?? 0] ?? "Starting") : "The server stopped during this run";
      return { line, detail: live > 0 ? `${progress}, ${live} in debate now` : progress };
    }
  }
}

export function barsOf(run: RunSummary): RunBar[] {
  const { consult } = run;
  if (!consult) return [];
  const outOf = consult.best?.out_of ?? 120;
  const missing = Math.max(0, consult.expected_moves - consult.moves.length);
  return [
    ...consult.moves.map((one): RunBar => {
      if (one.score === null) return { kind: one.in_debate && run.driven ? "now" : "later" };
      return { kind: "score", part: Math.max(0, (one.score / outOf - 0.3) / 0.7), top: one.recommended };
    }),
    ...Array.from({ length: missing }, (): RunBar => ({ kind: "later" })),
  ];
}

/** The page that a click on the row opens. */
export function pathOf(run: RunSummary): string {
  const hasResult = run.consult?.best || (run.consult?.panel && run.state === "finished");
  return hasResult ? `/runs/${run.run_id}/results` : `/runs/${run.run_id}`;
}

/** The start page with the settings of a run, to run it again. */
export function againPath(run: RunSummary): string | undefined {
  if (run.workflow !== "consult")
    return run.title.endsWith("…") ? undefined : `/tasks?task=${encodeURIComponent(run.title)}`;
  if (!run.consult?.ticker) return undefined;
  const rounds = [3, 5].includes(run.consult.rounds) ? `&rounds=${run.consult.rounds}` : "";
  return `/?ticker=${encodeURIComponent(run.consult.ticker)}${rounds}`;
}
