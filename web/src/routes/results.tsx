import { useEffect } from "react";
import { Link, useLocation, useParams, useSearchParams } from "react-router";
import { asProblem, post, problemWords } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { RunList } from "../gen/api";
import type { ConsultView, MoveView, RunView } from "../gen/run";
import { clock, count, dayAndTime, plain, shortId, usd } from "../model/format";
import { isOver } from "../model/reduce";
import { degradedWords, isSynthetic, ranked } from "../model/select";
import { Costs } from "../results/costs";
import { Disagreement } from "../results/disagreement";
import { Forecasts } from "../results/forecasts";
import { MoveCard } from "../results/move-card";
import { OtherMoves } from "../results/other-moves";
import { isFinal, recommendedWords, unfinishedWords, verdictOf } from "../results/verdict";
import { VerdictTiers } from "../results/verdict-tiers";
import { EvidenceSheets } from "../run/evidence";
import { ForkAction, ForkedFrom } from "../run/fork";
import { isolationFix, isolationReason, isolationWords } from "../run/isolation";
import { RunProblem } from "../run/problem";
import { useRun } from "../stream/use-run";
import { CodeText } from "../ui/code-text";
import { Button, ButtonLink, Crumb, Empty, Loading, Note, Tag } from "../ui/parts";
import { useToast } from "../ui/toast";

const FORMATS = [
  ["md", "Markdown"],
  ["pdf", "PDF"],
  ["csv", "CSV"],
  ["json", "JSON"],
] as const;

export default function Results() {
  const { runId = "" } = useParams();
  const { view, problem, refresh } = useRun(runId);
  const { hash } = useLocation();
  useEffect(() => {
    document.title = view?.consult ? `Results, ${plain(view.consult.ticker)} · Moothall` : "Moothall";
  }, [view]);
  const ready = view !== undefined;
  useEffect(() => {
    if (ready && hash) document.getElementById(hash.slice(1))?.scrollIntoView({ block: "center" });
  }, [ready, hash]);
  if (!view) return problem && !problem.isOffline ? <RunProblem problem={problem} /> : <Loading what="the results" />;
  if (!view.consult || view.consult.moves.every((one) => one.scored === null)) return <NoResults view={view} />;
  return <Verdict view={view} consult={view.consult} refresh={refresh} />;
}

function NoResults({ view }: { view: RunView }) {
  const over = isOver(view.status);
  const to = `/runs/${view.about.run_id}`;
  return (
    <Empty
      page
      title={over ? "No results" : "No results yet"}
      action={<Link to={to}>{over ? "See why" : "Watch the run"}</Link>}
    >
      {over ? "The run ended before any debate finished." : "The first score appears when a debate finishes."}
    </Empty>
  );
}

function Verdict({ view, consult, refresh }: { view: RunView; consult: ConsultView; refresh: () => void }) {
  const all = ranked(consult);
  const hasPanel = Boolean(consult.verdict);
  const unfinished = unfinishedWords(view, consult);
  const final = isFinal(view, consult);
  // The scores of the defence order nothing when a panel judged.
  const top = final || hasPanel ? all.filter((one) => consult.recommended.includes(one.move_id)) : all.slice(0, 3);
  const left = all.filter((one) => !top.includes(one));
  const rest = hasPanel ? consult.moves.filter((one) => left.includes(one)) : left;
  const against = useComparison();
  const company = plain(consult.gathered?.company ?? consult.ticker).replace(/ \(fictional\)$/, "");
  return (
    <div className="res fade">
      <ResultsHead
        view={view}
        consult={consult}
        title={final ? `${recommendedWords(consult)} for ${company}` : `So far, for ${company}`}
      />
      <ForkedFrom view={view} />
      {unfinished && (
        <Note tone="neutral" icon="wait">
          <b>
            {all.length} of {consult.expected_moves} moves are scored.
          </b>{" "}
          {unfinished} <Link to={`/runs/${view.about.run_id}`}>Watch the run</Link>
        </Note>
      )}
      <VerdictPanel view={view} consult={consult} />
      <Warnings view={view} consult={consult} refresh={refresh} />
      <VerdictTiers view={view} consult={consult} refresh={refresh} />
      <div className="top3">
        {top.map((one, rank) => (
          <MoveCard
            key={one.move_id}
            view={view}
            consult={consult}
            one={one}
            rank={rank}
            final={final}
            before={against?.(one)}
          />
        ))}
      </div>
      <div className="low">
        <OtherMoves view={view} moves={rest} from={top.length} hasPanel={hasPanel} before={against} />
        <Disagreement consult={consult} moves={all} nothing={view.about.do_nothing?.score} />
      </div>
      <Forecasts view={view} />
      <Costs view={view} />
      <Fine view={view} consult={consult} />
      <EvidenceSheets view={view} />
    </div>
  );
}

/** The decision first: one sentence, and what would change it. */
function VerdictPanel({ view, consult }: { view: RunView; consult: ConsultView }) {
  // The verdict of a panel has its own headline.
  const verdict = consult.verdict ? undefined : verdictOf(view, consult);
  if (!verdict) return null;
  return (
    <section className="verdict" aria-label="Verdict">
      <p className="verdictline">{verdict.sentence}</p>
      {verdict.changes.length > 0 && (
        <div>
          <h2>What would change this</h2>
          <ul>
            {verdict.changes.map((change) => (
              <li key={change}>{change}</li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

function ResultsHead({ view, consult, title }: { view: RunView; consult: ConsultView; title: string }) {
  const { about, usage } = view;
  const run = about.run_id;
  const took =
    view.started_at && view.ended_at ? clock(Date.parse(view.ended_at) - Date.parse(view.started_at)) : undefined;
  const rounds = consult.moves.reduce((sum, one) => sum + (one.scored?.rounds_done ?? 0), 0);
  return (
    <div className="vhead">
      <div>
        <Crumb>
          <Link className="mono" to={`/runs/${run}`}>
            {shortId(run)}
          </Link>
          <Tag>{about.models ?? about.model}</Tag>
          {isSynthetic(consult) && (
            <Tag tone="warn" icon="warn">
              AI-generated (not real filings)
            </Tag>
          )}
          {consult.gathered?.fictional && <Tag>Fictional company</Tag>}
        </Crumb>
        <h1>{title}</h1>
        <p className="facts">
          <span>
            <b>{consult.moves.length}</b> proposed
          </span>
          {about.do_nothing && (
            <span>
              doing nothing scores <b>{about.do_nothing.score}</b> of {about.do_nothing.out_of}
            </span>
          )}
          <span>
            <b>{count(rounds)}</b> debate rounds
          </span>
          <span>
            <b>{count(usage.calls)}</b> calls, <b>{usd(usage.cost_micro_usd)}</b>
            {took && (
              <>
                , <b>{took}</b>
              </>
            )}
          </span>
          {view.ended_at && <span>finished {dayAndTime(view.ended_at)}</span>}
        </p>
      </div>
      <div className="exp">
        <ButtonLink to={`/runs/${run}/memo`} look="primary">
          Read the memo
        </ButtonLink>
        <ForkAction view={view} />
        <CompareMenu view={view} consult={consult} />
        {FORMATS.map(([format, name], i) => (
          <ButtonLink
            key={format}
            to={`/api/runs/${run}/export.${format}`}
            download
            {...(i === 0 ? { icon: "down" as const } : {})}
          >
            {name}
          </ButtonLink>
        ))}
        <Button icon="print" onClick={() => print()}>
          Print
        </Button>
      </div>
    </div>
  );
}

/** Another run of the same company to compare with, from `?vs=`. */
function CompareMenu({ view, consult }: { view: RunView; consult: ConsultView }) {
  const [params, setParams] = useSearchParams();
  const { data } = useGet<RunList>(
    `/api/runs?limit=50&workflow=consult&state=finished&q=${encodeURIComponent(consult.ticker)}`,
  );
  const others = (data?.runs ?? []).filter(
    (run) => run.run_id !== view.about.run_id && run.consult?.ticker === consult.ticker,
  );
  if (others.length === 0) return null;
  return (
    <label className="vs">
      <span className="lab">Compare with</span>
      <select
        aria-label="Compare with"
        value={params.get("vs") ?? ""}
        onChange={(event) =>
          setParams(
            (before) => {
              if (event.target.value === "") before.delete("vs");
              else before.set("vs", event.target.value);
              return before;
            },
            { preventScrollReset: true },
          )
        }
      >
        <option value="">nothing</option>
        {others.slice(0, 20).map((run) => (
          <option key={run.run_id} value={run.run_id}>
            {dayAndTime(run.created_at)}, {plain(run.model)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The score of the move with the same title in the other run. */
function useComparison(): ((one: { title: string | null }) => number | undefined) | undefined {
  const [params] = useSearchParams();
  const vs = params.get("vs");
  const { data } = useGet<RunView>(vs ? `/api/runs/${encodeURIComponent(vs)}` : null);
  if (!vs || !data?.consult) return undefined;
  const scores = new Map(data.consult.moves.map((one) => [one.title, one.scored?.score ?? undefined]));
  return (one) => scores.get(one.title);
}

function Warnings({ view, consult, refresh }: { view: RunView; consult: ConsultView; refresh: () => void }) {
  const held = consult.moves.filter((one) => one.held);
  if (consult.close_calls.length === 0 && held.length === 0) return null;
  return (
    <div className="warnings">
      {consult.close_calls.map(({ upper, lower, apart, spread }) => (
        <Note key={`${upper} ${lower}`} tone="neutral">
          <b>Too close to call:</b> {upper} and {lower} are {apart} {apart === 1 ? "point" : "points"} apart, but scores
          of decision makers differ by up to {spread}.
        </Note>
      ))}
      {held.map((one) => (
        <Held key={one.move_id} view={view} one={one} refresh={refresh} />
      ))}
    </div>
  );
}

/** A move that automatic checks hold back. A reviewer may approve it; the receipt records who did. */
function Held({ view, one, refresh }: { view: RunView; one: MoveView; refresh: () => void }) {
  const toast = useToast();
  const may = useMay("review") !== false;
  const approve = async () => {
    try {
      await post(`/api/runs/${view.about.run_id}/approve`, { move: one.move_id });
      toast({ text: `${one.move_id} is approved. The receipt records it.`, tone: "neutral" });
      refresh();
    } catch (error) {
      toast({ text: problemWords(asProblem(error)), tone: "bad" });
    }
  };
  return (
    <Note icon="person">
      <b>{one.move_id} is held back</b> by automatic checks:{" "}
      {one.check?.findings.map((finding) => plain(finding.message)).join("; ")}{" "}
      <Link to={`?doc=${one.move_id}.md`} preventScrollReset>
        Read it
      </Link>
      {may ? (
        <>
          , then{" "}
          <Button size="small" onClick={approve}>
            Approve
          </Button>
        </>
      ) : (
        ". A reviewer decides this."
      )}
    </Note>
  );
}

function Fine({ view, consult }: { view: RunView; consult: ConsultView }) {
  const short = consult.moves.filter((one) => (one.scored?.degraded.length ?? 0) > 0);
  return (
    <div className="fine">
      <p>
        Scores are opinions of model personas after a debate. They are not a forecast and not investment advice.{" "}
        {view.isolation && `Debates ran ${isolationWords(view.isolation)}. `}
        {isSynthetic(consult) && "The source data is AI-generated (not real filings). "}
        {view.about.model === "demo" && "This run used the demo model: scripted answers, no analysis. "}
      </p>
      {(view.model_fallbacks ?? []).map(({ role, model, fallback, reason, answers }) => (
        <p key={`${role} ${model} ${fallback}`}>
          {plain(`${role}: ${Object.values(answers).reduce((sum, count) => sum + count, 0)} answers`)} by{" "}
          {plain(`${fallback} instead of ${model} (${reason})`)}.
        </p>
      ))}
      {view.fallbacks.map((reason) => (
        <p key={reason}>
          <CodeText text={isolationReason(reason)} /> <CodeText text={isolationFix(reason)} />
        </p>
      ))}
      {short.map((one) => (
        <p key={one.move_id}>
          {one.move_id}: {one.scored?.degraded.map(degradedWords).join("; ")}.
        </p>
      ))}
    </div>
  );
}
