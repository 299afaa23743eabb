import { useEffect, useMemo, useState } from "react";
import { Link, useParams } from "react-router";
import { costOfSum, short } from "../calls/call-format";
import { Detail } from "../calls/detail";
import { type CallPlace, type FilterName, type SortKey, useCallPlace } from "../calls/filters";
import { Sums } from "../calls/sums";
import { useCalls } from "../calls/use-calls";
import { Waterfall } from "../calls/waterfall";
import type { CallPage, CallSum, ModelCall } from "../gen/api";
import type { RunView } from "../gen/run";
import { count, plain, shortId } from "../model/format";
import { isOver } from "../model/reduce";
import { RunProblem } from "../run/problem";
import { useRun } from "../stream/use-run";
import { Sheet } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { useKeys } from "../ui/keys";
import { Button, Crumb, Empty, Loading, Note, Tag } from "../ui/parts";
import { addressNow } from "../ui/use-address";
import { useMedia } from "../ui/use-width";
import "../styles/calls.css";
import { ProblemText } from "../ui/code-text";

/** How long the text of a search must stay the same before it is searched. */
const TYPING_MS = 300;

export default function Calls() {
  const { runId = "" } = useParams();
  const run = useRun(runId);
  const place = useCallPlace();
  const { view } = run;
  const over = view && isOver(view.status);
  const log = useCalls(runId, place.query, view?.as_of_seq ?? 0, over);
  const calls = useMemo(() => sorted(log.calls, place.sort), [log.calls, place.sort]);
  const wide = useMedia("(min-width: 1181px)");
  const phone = useMedia("(max-width: 720px)");
  const name = view ? plain(view.consult?.ticker ?? view.about.title) : shortId(runId);
  useEffect(() => {
    document.title = `Calls, ${name} · Moothall`;
  }, [name]);
  const choose = (call: string) => place.change({ call });
  const step = (by: number) => {
    const call = addressNow().get("call");
    const at = calls.findIndex((one) => one.call === call);
    const next = calls[Math.min(Math.max(at < 0 ? 0 : at + by, 0), calls.length - 1)];
    if (next) choose(next.call);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    "/": () => document.getElementById("call-text")?.focus(),
    ["Escape"]: () => place.change({ call: null }),
  });
  if (run.problem && !run.problem.isOffline && !view) return <RunProblem problem={run.problem} />;
  const open = place.call;
  return (
    <div className={open && wide ? "callpage split" : "callpage"}>
      <div className="callmain">
        <Head runId={runId} view={view} name={name} page={log.page} />
        {log.problem && (
          <Note tone="bad" alert>
            <b>The calls could not be loaded.</b> <ProblemText problem={log.problem} />
          </Note>
        )}
        {log.page &&
          (phone ? (
            <details className="callfilterbox">
              <summary>{place.query === "" ? "Filters" : "Filters (active)"}</summary>
              <Controls place={place} page={log.page} />
            </details>
          ) : (
            <Controls place={place} page={log.page} />
          ))}
        {log.page && log.page.all.total.calls > 0 && (
          <details className="panel callsumbox" open={wide || undefined}>
            <summary>Sums by role, move and model</summary>
            <Sums sums={log.page.matching} place={place} />
          </details>
        )}
        {calls.length > 0 ? (
          <Waterfall
            calls={calls}
            origin={log.page?.first_start_ms ?? 0}
            chosen={open}
            onChoose={choose}
            onStep={step}
          />
        ) : (
          <NoCalls view={view} place={place} page={log.problem ? undefined : log.page} isLoading={!log.page} />
        )}
      </div>
      {open &&
        (wide ? (
          <aside className="panel callside" aria-label="Call">
            <header>
              <h2>{plain(open)}</h2>
              <Button look="ghost" size="icon" aria-label="Close" onClick={() => place.change({ call: null })}>
                <Icon name="close" />
              </Button>
            </header>
            <Detail run={runId} call={open} />
          </aside>
        ) : (
          <Sheet title={plain(open)} open onClose={() => place.change({ call: null })}>
            <Detail run={runId} call={open} />
          </Sheet>
        ))}
    </div>
  );
}

function sorted(calls: readonly ModelCall[], sort: SortKey): readonly ModelCall[] {
  const by: Record<Exclude<SortKey, "time">, (call: ModelCall) => number> = {
    length: (call) => call.length_ms,
    cost: (call) => call.cost_micro_usd ?? 0,
    tokens: (call) => call.prompt_tokens + call.output_tokens,
  };
  if (sort === "time") return calls;
  const key = by[sort];
  return [...calls].sort((one, other) => key(other) - key(one));
}

function Head({
  runId,
  view,
  name,
  page,
}: {
  runId: string;
  view: RunView | undefined;
  name: string;
  page: CallPage | undefined;
}) {
  const total = page?.matching.total;
  const all = page?.all.total.calls ?? 0;
  // Retries repeat calls, so they are counted separately.
  const retries = Math.min(view?.usage.extra_calls ?? 0, all);
  return (
    <header className="callpagehead">
      <Crumb>
        <Link to={`/runs/${runId}`}>{name}</Link>
        <span aria-hidden="true">/</span>
        <span>Calls</span>
      </Crumb>
      <div className="calltitle">
        <h1>Model calls</h1>
        {view?.status.state === "running" && view.about.driven && <Tag icon="run">Live</Tag>}
      </div>
      {total && (
        <p className="calltotal" aria-live="off">
          {total.calls === all ? (
            <>
              <b>{count(all - retries)}</b> calls
              {retries > 0 && ` and ${count(retries)} ${retries === 1 ? "retry" : "retries"}`}
            </>
          ) : (
            <>
              <b>{count(total.calls)}</b> of {count(all)} calls
            </>
          )}{" "}
          · <b>{short(total.prompt_tokens)}</b> tokens in
          {total.prompt_tokens > 0 && `, ${Math.round((total.cached_tokens / total.prompt_tokens) * 100)} % cached`} ·{" "}
          <b>{short(total.output_tokens)}</b> out · <b>{costOfSum(total)}</b>
        </p>
      )}
    </header>
  );
}

function Controls({ place, page }: { place: CallPlace; page: CallPage }) {
  const { all } = page;
  const filtered = place.query !== "";
  return (
    <search className="callfilters" aria-label="Filter calls">
      <Choice
        place={place}
        name="role"
        title="Role"
        sums={[...all.roles, ...all.members.filter(isNotRole(all.roles))]}
      />
      <Choice place={place} name="stage" title="Stage" sums={all.stages} />
      <Choice place={place} name="move" title="Move" sums={all.moves.filter((sum) => sum.name !== "no move")} />
      <Choice place={place} name="round" title="Round" sums={all.rounds} />
      <Choice place={place} name="model" title="Model" sums={all.models} />
      <Choice place={place} name="result" title="Result" sums={all.results} />
      <div>
        <label className="lab" htmlFor="call-sort">
          Sort
        </label>
        <select
          id="call-sort"
          value={place.sort}
          onChange={(event) => place.change({ sort: sortParam(event.target.value) })}
        >
          <option value="time">Time</option>
          <option value="length">Longest</option>
          <option value="cost">Most expensive</option>
          <option value="tokens">Most tokens</option>
        </select>
      </div>
      <Search place={place} />
      <label className="callretries">
        <input
          type="checkbox"
          checked={place.filters.retries === "true"}
          onChange={(event) => place.change({ retries: event.target.checked ? "true" : null })}
        />
        Retries only
      </label>
      {filtered && (
        <Button size="small" onClick={place.clear}>
          Clear filters
        </Button>
      )}
    </search>
  );
}

function sortParam(value: string): string | null {
  return value === "time" ? null : value;
}

function isNotRole(roles: CallSum[]): (sum: CallSum) => boolean {
  return (sum) => !roles.some((role) => role.name === sum.name);
}

function Choice({ place, name, title, sums }: { place: CallPlace; name: FilterName; title: string; sums: CallSum[] }) {
  const value = place.filters[name] ?? "";
  if (sums.length < 2 && value === "") return null;
  const known = sums.some((sum) => sum.name === value);
  return (
    <div>
      <label className="lab" htmlFor={`call-${name}`}>
        {title}
      </label>
      <select id={`call-${name}`} value={value} onChange={(event) => place.change({ [name]: event.target.value })}>
        <option value="">All</option>
        {!known && value !== "" && <option value={value}>{plain(value)}</option>}
        {sums.map((sum) => (
          <option key={sum.name} value={sum.name}>
            {plain(sum.name)} ({count(sum.calls)})
          </option>
        ))}
      </select>
    </div>
  );
}

function Search({ place }: { place: CallPlace }) {
  const now = place.filters.text ?? "";
  const [text, setText] = useState(now);
  const { change } = place;
  useEffect(() => setText(now), [now]);
  useEffect(() => {
    if (text === now) return;
    const timer = setTimeout(() => change({ text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, now, change]);
  return (
    <label className="callsearch">
      <span className="lab">Text in name, reason or answer</span>
      <input id="call-text" type="search" value={text} onChange={(event) => setText(event.target.value)} />
    </label>
  );
}

function NoCalls({
  view,
  place,
  page,
  isLoading,
}: {
  view: RunView | undefined;
  place: CallPlace;
  page: CallPage | undefined;
  isLoading: boolean;
}) {
  if (isLoading) return <Loading what="the calls" />;
  if (!page) return null;
  if (place.query !== "" && page.all.total.calls > 0)
    return page.matching.total.calls > 0 ? (
      <Loading what="the calls" />
    ) : (
      <Empty title="No call matches the filters" action={<Button onClick={place.clear}>Clear filters</Button>}>
        The run has {count(page.all.total.calls)} calls.
      </Empty>
    );
  return (
    <Empty title={view && isOver(view.status) ? "This run made no calls" : "No calls yet"}>
      {view && isOver(view.status)
        ? "It ended before the first answer of a model."
        : "Calls appear here as soon as a model has answered."}
    </Empty>
  );
}
