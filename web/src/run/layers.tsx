// The output of each stage: documents and facts, inferences, moves with their checks, the ranking.
import clsx from "clsx";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { Facts } from "../api/facts";
import { useGet } from "../api/use-get";
import type { AgentView, ClaimCheckView, ConsultView, MoveView, RunView, VerdictTier, VerdictView } from "../gen/run";
import { capital, count, isoDay, plain } from "../model/format";
import { measureName } from "../model/measures";
import {
  byNumber,
  isSynthetic,
  LAYERS,
  layerWords,
  personaOf,
  ranked,
  seats,
  stageState,
  sumsOf,
} from "../model/select";
import { unfinishedWords } from "../results/verdict";
import { AgentText, AgentWords } from "../ui/agent-text";
import { Icon, type IconName } from "../ui/icon";
import { Button, Empty, Loading, Note, Tag } from "../ui/parts";
import { ScoreBars } from "../viz/score-bars";
import { factValue } from "./fact-value";
import type { Place } from "./place";

export function LayerPanel({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  switch (place.layer) {
    case 0:
      return <Gather view={view} consult={consult} />;
    case 1:
      return <Infer view={view} consult={consult} place={place} />;
    case 2:
      return <Analyze consult={consult} place={place} />;
    case 4:
      return <Rank view={view} consult={consult} place={place} />;
    default:
      return <Overview view={view} consult={consult} place={place} />;
  }
}

/** The overview: one line per stage. */
function Overview({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  return (
    <div className="panel overview fade">
      {LAYERS.map((name, layer) => {
        const state = stageState(view, consult, layer);
        const agents = consult.agents.filter((agent) => agent.layer === layer);
        const people = layer === 3 ? debateWords(consult) : agents.map((agent) => plain(agent.persona)).join(", ");
        return (
          <button key={name} type="button" className="oline" onClick={() => place.go({ layer: String(layer) })}>
            <span className={clsx("oname", state)}>
              <Icon name={{ done: "check", running: "run", waiting: "wait", stopped: "pause" }[state] as IconName} />
              {name}
            </span>
            <span className="owords">{layerWords(view, consult, layer)}</span>
            <span className="muted oagents" title={people}>
              {people}
            </span>
          </button>
        );
      })}
    </div>
  );
}

function debateWords(consult: ConsultView): string {
  const turns = consult.moves.reduce(
    (sum, one) =>
      sum +
      one.rounds.reduce((all, round) => {
        const cells = Object.values(round.threads);
        return all + cells.filter((cell) => cell.critic).length + cells.filter((cell) => cell.reply).length;
      }, 0),
    0,
  );
  return turns > 0 ? `${count(turns)} debate turns` : "one critic against the decision makers";
}

function Gather({ view, consult }: { view: RunView; consult: ConsultView }) {
  const { gathered } = consult;
  const facts = useGet<Facts>(
    gathered && consult.listed && !isSynthetic(consult) ? `/api/facts/${encodeURIComponent(consult.ticker)}` : null,
  );
  if (!gathered)
    return (
      <div className="panel">
        <Empty title="Reading filings">Facts appear here with their source filing.</Empty>
      </div>
    );
  const counts: [string, number][] = [
    ["facts", gathered.facts],
    ["passages of filings", gathered.passages],
    ["8-K events", gathered.events],
    ["own documents", gathered.documents],
    ["headlines", gathered.headlines],
  ];
  return (
    <div className="zin panel fade">
      {isSynthetic(consult) && (
        <Note>
          <b>Written by a model, not filed by the company.</b> Do not use the figures of this run as evidence.
        </Note>
      )}
      {gathered.notes?.map((note) => (
        <Note key={note} tone="neutral">
          {plain(note)}
        </Note>
      ))}
      <dl className="factline">
        <div>
          <dt className="lab">Company</dt>
          <dd>{plain(gathered.company)}</dd>
        </div>
        <div>
          <dt className="lab">Data as of</dt>
          <dd className="mono">{gathered.as_of ? isoDay(gathered.as_of) : "–"}</dd>
        </div>
        <div>
          <dt className="lab">Newest filing</dt>
          <dd className="mono">
            {gathered.newest_filing
              ? `${plain(gathered.newest_filing.form)}, ${isoDay(gathered.newest_filing.filed)}`
              : "–"}
          </dd>
        </div>
        {counts
          .filter(([, number]) => number > 0)
          .map(([name, number]) => (
            <div key={name}>
              <dt className="lab">{name}</dt>
              <dd className="num">{count(number)}</dd>
            </div>
          ))}
      </dl>
      {facts.data && <FactTable facts={facts.data} />}
      {!facts.data && !facts.problem && !isSynthetic(consult) && <Loading what="facts" />}
      <Documents view={view} consult={consult} layer={0} />
    </div>
  );
}

const SHOWN = [
  "Revenue",
  "Revenue.yoy",
  "GrossMargin",
  "OperatingMargin",
  "NetIncome",
  "NetMargin",
  "CFO",
  "FreeCashFlow",
  "Cash",
  "TotalDebt",
  "Equity",
  "ROE",
];

/** The main facts by year; each cell opens its source. */
function FactTable({ facts }: { facts: Facts }) {
  const years = [...new Set(facts.facts.map((fact) => fact.period).filter((period) => /^FY[0-9]{4}$/.test(period)))]
    .sort()
    .slice(-5);
  const rows = SHOWN.filter((metric) =>
    facts.facts.some((fact) => fact.metric === metric && years.includes(fact.period)),
  );
  return (
    <div className="tablebox">
      <table className="facts5">
        <caption className="sr">Main facts by fiscal year</caption>
        <thead>
          <tr>
            <th scope="col">Measure</th>
            {years.map((year) => (
              <th key={year} scope="col">
                {year}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((metric) => (
            <tr key={metric}>
              <th scope="row">{measureName(metric)}</th>
              {years.map((year) => {
                const fact = facts.facts.find((one) => one.metric === metric && one.period === year);
                return (
                  <td key={year} className="num">
                    {fact ? <FactCell id={`F0:${fact.id}`} shown={factValue(fact)} /> : "–"}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function FactCell({ id, shown }: { id: string; shown: string }) {
  return (
    <Link className="factcell" to={`?layer=0&fact=${encodeURIComponent(id)}`} preventScrollReset>
      {shown}
    </Link>
  );
}

function Documents({ view, consult, layer }: { view: RunView; consult: ConsultView; layer: number }) {
  const names = consult.layers[layer]?.artifacts ?? [];
  if (names.length === 0) return null;
  return (
    <p className="docline muted">
      Kept as{" "}
      {names.map((name, i) => (
        <span key={name}>
          {i > 0 && ", "}
          <a
            className="mono"
            href={`/api/runs/${view.about.run_id}/artifacts/${encodeURIComponent(name)}`}
            download={name}
          >
            {name}
          </a>
        </span>
      ))}
    </p>
  );
}

function Infer({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  const agents = consult.agents.filter((agent) => agent.layer === 1);
  if (agents.length === 0)
    return (
      <div className="panel">
        <Empty title="No inferences yet">Two agents interpret the facts: F1 and F2.</Empty>
      </div>
    );
  return (
    <div className="zin panel fade">
      <div className="docs">
        {agents.map((agent) => (
          <Inference key={agent.agent_id} view={view} consult={consult} agent={agent} place={place} />
        ))}
      </div>
    </div>
  );
}

function Inference({
  view,
  consult,
  agent,
  place,
}: {
  view: RunView;
  consult: ConsultView;
  agent: AgentView;
  place: Place;
}) {
  const name = agent.outputs.find((output) => output.endsWith(".md"));
  const run = view.about.run_id;
  const { data } = useGet<string>(name ? `/api/runs/${run}/artifacts/${name}` : null, agent.state, "text");
  const check = consult.checks.find((one) => one.document === name);
  return (
    <article className="panel doc">
      <h3>
        <span className="mono">{agent.agent_id}</span> {plain(agent.persona)}
      </h3>
      <CheckLine check={check} />
      {data === undefined ? <Waiting agent={agent} /> : <AgentText text={excerpt(data)} />}
      {name && (
        <Button size="small" look="ghost" onClick={() => place.go({ doc: name })}>
          Read more
        </Button>
      )}
    </article>
  );
}

function Waiting({ agent }: { agent: AgentView }) {
  return agent.state === "running" ? (
    <div className="sk" role="status" aria-label={`${agent.persona} is thinking`}>
      <i style={{ width: "92%" }} />
      <i style={{ width: "78%" }} />
      <i style={{ width: "60%" }} />
    </div>
  ) : (
    <p className="muted">Nothing was written.</p>
  );
}

/** The first blocks of a document. */
function excerpt(text: string): string {
  const kept: string[] = [];
  let length = 0;
  for (const part of text.split("\n\n")) {
    length += part.length;
    if (kept.length > 0 && length > 900) break;
    kept.push(part);
  }
  return kept.join("\n\n");
}

/** The result of a document's check: how many of its numbers are supported. */
export function CheckLine({ check }: { check: ClaimCheckView | null | undefined }) {
  if (!check) return <p className="check muted">not checked yet</p>;
  const all = check.supported === check.numbers;
  const grave = check.findings.filter((finding) => finding.severity === "block" || finding.severity === "escalate");
  return (
    <p className={clsx("check", grave.length > 0 ? "bad" : all ? "good" : "warn")}>
      <Icon name={grave.length > 0 || !all ? "warn" : "check"} />
      {check.numbers === 0 ? "no numbers" : `${check.supported} of ${check.numbers} supported`}
      {check.rewrite && ", rewrite requested"}
    </p>
  );
}

function Analyze({ consult, place }: { consult: ConsultView; place: Place }) {
  const agents = consult.agents.filter((agent) => agent.layer === 2);
  if (agents.length === 0)
    return (
      <div className="panel">
        <Empty title="No analyst has started">Each analyst proposes moves based on F1 and F2.</Empty>
      </div>
    );
  const added = consult.moves.filter((one) => one.by_person && !agents.some((agent) => agent.agent_id === one.analyst));
  return (
    <div className="zin panel fade">
      <div className="pers">
        {agents.map((agent) => (
          <section key={agent.agent_id} className="panel per" aria-label={plain(agent.persona)}>
            <h3>{plain(agent.persona)}</h3>
            <MoveList moves={consult.moves.filter((one) => one.analyst === agent.agent_id)} place={place} />
            {agent.state === "running" && (
              <div className="sk" role="status" aria-label="thinking">
                <i style={{ width: "90%" }} />
                <i style={{ width: "70%" }} />
              </div>
            )}
          </section>
        ))}
        {added.length > 0 && (
          <section className="panel per" aria-label="Added by you">
            <h3>Added by you</h3>
            <MoveList moves={added} place={place} />
          </section>
        )}
      </div>
    </div>
  );
}

function MoveList({ moves, place }: { moves: MoveView[]; place: Place }) {
  return (
    <ul>
      {moves.map((one) => (
        <li key={one.move_id}>
          <button type="button" className="proposal" onClick={() => place.go({ doc: `${one.move_id}.md` })}>
            <span className="mono muted">{one.move_id}</span> {plain(one.title ?? "being written")}
          </button>
          <CheckLine check={one.check} />
          {one.check?.findings.map((finding, i) => (
            <p key={i} className="finding">
              <Tag tone={finding.severity === "note" ? undefined : finding.severity === "warn" ? "warn" : "bad"}>
                {finding.severity}
              </Tag>{" "}
              <AgentWords text={finding.message} />
            </p>
          ))}
          {one.vetoed && <Tag tone="warn">vetoed</Tag>}
          {one.by_person && <Tag icon="person">by a user</Tag>}
        </li>
      ))}
    </ul>
  );
}

function Rank({ view, consult, place }: { view: RunView; consult: ConsultView; place: Place }) {
  const { verdict } = consult;
  const scored = verdict ? byTier(ranked(consult), verdict) : ranked(consult);
  if (scored.length === 0)
    return (
      <div className="panel">
        <Empty title="Ranking starts after the debates">No move has a score yet.</Empty>
      </div>
    );
  const unfinished = unfinishedWords(view, consult);
  const failed = verdict?.tiers.controls.check === "failed";
  const ids = seats(view);
  return (
    <div className="panel ranklist fade">
      {verdict?.warning && (
        <Note tone={failed ? "bad" : "warn"}>
          {failed ? "✗" : "!"} {plain(verdict.warning)}
        </Note>
      )}
      {unfinished && (
        <Note tone="neutral" icon="wait">
          {scored.length} of {consult.expected_moves} moves have a score. {unfinished}
        </Note>
      )}
      <ol>
        {scored.map((one, i) => {
          const estimate = verdict?.tiers.estimates.find((found) => found.move_id === one.move_id);
          const tier = estimate?.tier ? capital(estimate.tier) : "–";
          return (
            <li key={one.move_id}>
              <Line first={!unfinished && consult.recommended.includes(one.move_id)} tiered={Boolean(verdict)}>
                <span className="mono muted">{verdict ? tier : unfinished ? "·" : i + 1}</span>
                <button
                  type="button"
                  className="ti"
                  title={`${one.move_id} ${plain(one.title ?? "")}`}
                  onClick={() => place.go({ layer: "3", move: one.move_id })}
                >
                  <span className="mono muted">{one.move_id}</span> {plain(one.title ?? "")}
                </button>
                <span className="muted only-w">{personaOf(consult, one.analyst)}</span>
                {/* The bars and their sum are scores of the defence. */}
                {verdict ? (
                  <span className="num sc">{estimate ? Math.round(estimate.score / 10) : "Not scored"}</span>
                ) : (
                  <>
                    <ScoreBars sums={sumsOf(one, ids)} max={(one.scored?.out_of ?? 120) / ids.length} />
                    <span className="num sc">{one.scored?.score ?? "Not scored"}</span>
                  </>
                )}
              </Line>
            </li>
          );
        })}
      </ol>
      {(verdict || !unfinished) && (
        <p className="docline">
          <Link to={`/runs/${view.about.run_id}/results`}>All results, with objections and evidence</Link>
        </p>
      )}
    </div>
  );
}

/** Moves by tier. The order within a tier means nothing, so it is by number. */
function byTier(moves: readonly MoveView[], { tiers }: VerdictView): MoveView[] {
  const tierOf = new Map(tiers.estimates.map((one) => [one.move_id, one.tier]));
  const of = (tier: VerdictTier | null) => moves.filter((one) => (tierOf.get(one.move_id) ?? null) === tier);
  return (["lead", "middle", "behind", null] as const).flatMap((tier) =>
    of(tier).sort((a, b) => byNumber(a.move_id, b.move_id)),
  );
}

function Line({ first, tiered, children }: { first: boolean; tiered: boolean; children: ReactNode }) {
  return <div className={clsx("rline", first && "top", tiered && "tiered")}>{children}</div>;
}
