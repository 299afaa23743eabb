import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

/** Phrases that the web UI no longer uses, and what it says instead. */
const REPLACED: Record<string, string> = {
  "stands trial": "Which company should we analyze?",
  "been on trial": "No runs yet",
  "on trial": "Generate and test a program",
  "Wait for me after": "Pause for my review before the debates start",
  "model calls to demo": "About 925 model calls (demo model)",
  "written by a model": "AI-generated (not real filings)",
  "model-written": "AI-generated (not real filings)",
  "Asked again": "Retries",
  "Let the debates begin": "Start debates",
  "wait for you before": "Review 15 moves before the debates",
  "The run waits for you": "Your review is needed",
  "waits for you": "Needs review",
  "Why it is not debated": "Reason for removing it (optional)",
  "somebody asked for a pause": "Paused by ada at 16:04",
  "stands still": "Pausing: calls in progress will finish first.",
  "Stands still": "Paused: 15 moves need review",
  "The run goes on.": "Resumed. Finished calls are not repeated.",
  "is asked again": "Finished calls are not repeated.",
  "Nobody drives": "Interrupted: the server stopped during this run.",
  "goes on without this page": "Can't reach the server.",
  "starts when a place is free": "Queued",
  "gave ground": "Partly conceded",
  "Judges differ by": "Score range",
  "Weaker walls": "Sandbox not used",
  "walls are never lowered": "weaker isolation is always reported",
  "What its sandboxes are worth": "Tests how well each sandbox isolates programs.",
  "The SEC wants to know": "The SEC requires a contact name and email.",
  "made just now": "Created just now",
  "counts until": "expires",
  "I have kept it": "Done",
  "the gate judges": "Agents propose changes.",
  "with its worker": "Changes requested",
  "at the gate": "Checking",
  "given up": "Withdrawn",
  "handed in": "submitted",
  "a file that says what is installed": "Dependency file changed: needs review",
  "text as code": "Adds a shell command",
  "Why it is fine": "Comment (optional)",
  "Why never": "Reason for rejecting",
  "Approve what is shown": "Approve this version",
  "Reject for good": "Reject",
  "It was written again": "This draft changed while you were reading.",
  "the draft was made for": "Conflict: Makefile changed after this draft was made.",
  "The chain holds": "Audit log verified",
  "The log is valid": "Audit log verified",
  "Anchor to keep": "Save this checksum elsewhere",
  "was given no workspace": "No workspace is configured",
  "Enter a token of your team": "Sign in with your access token",
  "this needs the scope": "You have read-only access. Ask an admin for run access.",
  "Nothing is called that": "No results",
  "exactly this view is copied": "Link copied",
  "Known up to": "Data as of",
  "filing events": "8-K events",
};

const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter(
  (file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$|^gen\b/.test(file),
);

it("the web UI uses no phrase that was replaced", () => {
  const found = sources.flatMap((file) => {
    // A sentence may be broken across lines.
    const text = readFileSync(join(import.meta.dirname, file), "utf8").replaceAll(/\s+/g, " ");
    const old = Object.entries(REPLACED).filter(([phrase]) => text.includes(phrase));
    return old.map(([phrase, instead]) => `${file}: "${phrase}"; write "${instead}"`);
  });
  expect(sources.length).toBeGreaterThan(100);
  expect(found).toEqual([]);
});
