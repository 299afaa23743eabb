// The verdict of a panel: estimates with intervals on one axis, by tier. The order within a tier means nothing.
import clsx from "clsx";
import { useState } from "react";
import { Link } from "react-router";
import { asProblem, post, problemWords } from "../api/client";
import { useMay } from "../api/session";
import type {
  ConsultView,
  ControlResult,
  MoveEstimate,
  RunView,
  StabilityReport,
  VerdictTier,
  VerdictView,
} from "../gen/run";
import { capital, plain } from "../model/format";
import { isOver } from "../model/reduce";
import { Button, Note } from "../ui/parts";
import { useToast } from "../ui/toast";
import { choiceWords, panelNotes } from "./verdict";
import "./verdict-tiers.css";

const TIERS: readonly VerdictTier[] = ["lead", "middle", "behind"];
const NAMES: Record<VerdictTier, string> = { lead: "Lead", middle: "Middle", behind: "Behind" };
const LABELS: Record<VerdictView["tiers"]["panel"], string> = {
  independent: "independent panel",
  mixed: "mixed panel",
  "single-model": "single model",
};
const WIDTH = 260;

/** The tiers of a consultation; nothing if no panel sat. */
export function VerdictTiers({ view, consult, refresh }: { view: RunView; consult: ConsultView; refresh: () => void }) {
  const { verdict } = consult;
  const [showsControls, setShowsControls] = useState(false);
  if (!verdict) return null;
  const { tiers } = verdict;
  const caught = tiers.controls.results.filter((one) => one.is_caught).length;
  const failed = tiers.controls.check === "failed";
  const notes = panelNotes(tiers);
  const choice = choiceWords(consult);
  return (
    <section className="panel vt" aria-label="Verdict of the panel">
      <div className="cap">
        <h2>{capital(verdict.headline)}</h2>
        <p>
          {LABELS[tiers.panel]} · {caught} of {tiers.controls.results.length} controls caught
          {verdict.again.length > 0 && ` · stage ${verdict.stage}; debated again: ${verdict.again.join(", ")}`}
        </p>
      </div>
      {verdict.warning && (
        <Note tone={failed ? "bad" : "warn"} icon="warn">
          {failed ? "✗" : "!"} {verdict.warning}
          {failed && isOver(view.status) && <Accept view={view} refresh={refresh} />}
        </Note>
      )}
      {verdict.stability && <Stability of={verdict.stability} />}
      {tiers.controls.results.length > 0 && (
        <label className="planted">
          <input type="checkbox" checked={showsControls} onChange={(event) => setShowsControls(event.target.checked)} />
          Show the planted controls
        </label>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">Move</th>
            <th scope="col">Score and interval</th>
            <th scope="col" className="right">
              Among best 3
            </th>
            <th scope="col" className="right">
              Debates
            </th>
          </tr>
        </thead>
        {groups(tiers.estimates).map(([tier, rows]) => (
          <tbody key={tier ?? "none"} className={clsx("tier", tier)}>
            <tr>
              <th scope="rowgroup" colSpan={4}>
                {tier ? NAMES[tier] : "No tier"}
              </th>
            </tr>
            {rows.map((one) => (
              <Row key={one.move_id} view={view} consult={consult} one={one} />
            ))}
          </tbody>
        ))}
        {showsControls && (
          <tbody className="tier controls">
            <tr>
              <th scope="rowgroup" colSpan={4}>
                Planted controls
              </th>
            </tr>
            {tiers.controls.results.map((one) => (
              <Control key={one.id} consult={consult} verdict={verdict} one={one} />
            ))}
          </tbody>
        )}
      </table>
      {notes.length > 0 && (
        <div className="changes">
          <h3>What would change this</h3>
          <ul>
            {notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </div>
      )}
      {choice && <p>{choice}</p>}
    </section>
  );
}

/** A planted control: a hollow diamond at the panel's mean score. */
function Control({ consult, verdict, one }: { consult: ConsultView; verdict: VerdictView; one: ControlResult }) {
  const score = verdict.control_scores[one.id];
  const max = 10 * (consult.moves.find((known) => known.scored)?.scored?.out_of ?? 120);
  const nothing = verdict.tiers.estimates.find((other) => other.kind === "do-nothing");
  return (
    <tr>
      <td>{controlName(one)}</td>
      <td>{score !== undefined && <Diamond score={score} line={nothing?.score} max={max} />}</td>
      <td colSpan={2} className={clsx("right", !one.is_caught && "held")}>
        {controlResult(one)}
      </td>
    </tr>
  );
}

/** The name of a planted control. */
export function controlName({ kind }: Pick<ControlResult, "kind">): string {
  return kind === "known-bad" ? "Known-bad move" : `Weakened copy of ${kind["weakened-copy"]}`;
}

/** Whether the panel caught it, and how many of its members did. */
export function controlResult({ is_caught, caught_by }: Pick<ControlResult, "is_caught" | "caught_by">): string {
  const members = caught_by.length === 1 ? "1 member" : `${caught_by.length} members`;
  return is_caught ? `caught by ${members}` : `missed, caught by ${members} only`;
}

function Diamond({ score, line, max }: { score: number; line: number | undefined; max: number }) {
  const at = (tenths: number) => 4 + ((WIDTH - 8) * Math.min(Math.max(tenths, 0), max)) / max;
  const points = Math.round(score / 10);
  return (
    <span className="iv">
      <svg viewBox={`0 0 ${WIDTH} 16`} role="img" aria-label={`control, score ${points}`}>
        <path d={`M4 8H${WIDTH - 4}`} stroke="var(--line)" />
        {line !== undefined && <path d={`M${at(line)} 0v16`} stroke="var(--ink3)" strokeDasharray="2 2" />}
        <path d={`M${at(score)} 3l5 5l-5 5l-5-5z`} stroke="var(--ink)" strokeWidth="1.4" fill="var(--paper)" />
      </svg>
      <span className="num" aria-hidden="true">
        {points}
      </span>
    </span>
  );
}

/** How well repeated verdicts of the same moves agree. */
function Stability({ of }: { of: StabilityReport }) {
  const { top3_overlap: common, verdicts, tau, contradictions } = of;
  const word = common >= 700 ? "Repeatable" : common >= 400 ? "Partly repeatable" : "Not repeatable";
  return (
    <p>
      <b>{word}</b> in {verdicts} verdicts of the same moves: {percent(common)} of the best three in common, Kendall's
      tau {(tau / 1000).toFixed(2)}, {contradictions} contradictions.
    </p>
  );
}

/** Accepts the verdict of a panel that failed its controls. The warning stays, and the receipt records who did. */
function Accept({ view, refresh }: { view: RunView; refresh: () => void }) {
  const toast = useToast();
  const may = useMay("review") !== false;
  const accept = async () => {
    try {
      await post(`/api/runs/${view.about.run_id}/approve`, { move: "verdict" });
      toast({ text: "The verdict is approved. The warning stays, and the receipt records it.", tone: "neutral" });
      refresh();
    } catch (error) {
      toast({ text: problemWords(asProblem(error)), tone: "bad" });
    }
  };
  if (!may) return " A reviewer decides this.";
  return (
    <>
      {" "}
      <Button size="small" onClick={accept}>
        Approve anyway
      </Button>
    </>
  );
}

function Row({ view, consult, one }: { view: RunView; consult: ConsultView; one: MoveEstimate }) {
  const isNothing = one.kind === "do-nothing";
  const title = consult.moves.find((known) => known.move_id === one.move_id)?.title;
  const nothing = consult.verdict?.tiers.estimates.find((other) => other.kind === "do-nothing");
  const outOf = consult.moves.find((known) => known.scored)?.scored?.out_of ?? 120;
  return (
    <tr>
      <td>
        {isNothing ? (
          "Do nothing (m0)"
        ) : (
          <Link to={`/runs/${view.about.run_id}?layer=3&move=${one.move_id}`}>
            <b>{one.move_id}</b> {plain(title ?? "")}
          </Link>
        )}
        {one.kind === "held-move" && <span className="held"> held back</span>}
      </td>
      <td>
        <Interval one={one} line={nothing?.score} max={outOf * 10} />
      </td>
      <td className="num">{percent(one.chance_top3)}</td>
      <td className="num">{one.debates}</td>
    </tr>
  );
}

/** A dot with whiskers; the dashed line is doing nothing. */
function Interval({ one, line, max }: { one: MoveEstimate; line: number | undefined; max: number }) {
  const at = (tenths: number) => 4 + ((WIDTH - 8) * Math.min(Math.max(tenths, 0), max)) / max;
  const points = (tenths: number) => Math.round(tenths / 10);
  const range = one.interval ? `, interval ${points(one.interval.low)} to ${points(one.interval.high)}` : "";
  return (
    <span className="iv">
      <svg viewBox={`0 0 ${WIDTH} 16`} role="img" aria-label={`score ${points(one.score)}${range}`}>
        <path d={`M4 8H${WIDTH - 4}`} stroke="var(--line)" />
        {line !== undefined && <path d={`M${at(line)} 0v16`} stroke="var(--ink3)" strokeDasharray="2 2" />}
        {one.interval && (
          <path
            d={`M${at(one.interval.low)} 4v8m0-4H${at(one.interval.high)}m0-4v8`}
            stroke="var(--ink2)"
            strokeWidth="1.4"
            fill="none"
          />
        )}
        <circle cx={at(one.score)} cy="8" r="4" fill="var(--ink)" />
      </svg>
      <span className="num" aria-hidden="true">
        {points(one.score)}
      </span>
    </span>
  );
}

/** Tiers that have rows, best first, then rows without a tier; each by score. */
export function groups(
  estimates: readonly MoveEstimate[],
): readonly (readonly [VerdictTier | null, readonly MoveEstimate[]])[] {
  const of = (tier: VerdictTier | null) =>
    estimates.filter((one) => (one.tier ?? null) === tier).toSorted((a, b) => b.score - a.score);
  return [...TIERS, null].map((tier) => [tier, of(tier)] as const).filter(([, rows]) => rows.length > 0);
}

/** A chance in thousandths as whole percent. */
export function percent(thousandths: number | null | undefined): string {
  return thousandths === null || thousandths === undefined ? "–" : `${Math.round(thousandths / 10)} %`;
}
