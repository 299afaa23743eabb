import clsx from "clsx";
import { Tabs } from "radix-ui";
import { Fragment, useEffect, useRef, useState } from "react";
import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { DebateThread, ThreadTurn } from "../gen/api";
import type { ConsultView, DebateStance, MoveView, RunView } from "../gen/run";
import { plain } from "../model/format";
import { currentRound, degradedWords, moveState, personaOf, seats, stripOf } from "../model/select";
import { AgentText } from "../ui/agent-text";
import { ProblemText } from "../ui/code-text";
import { Mark, seatShape } from "../ui/mark";
import { Button, Empty, Loading, Note, Tag } from "../ui/parts";
import { type Cell, MiniStrip } from "../viz/heat-strip";
import { Calculation, calculationsOf } from "./calculation";
import { isolationWords } from "./isolation";
import { criticName, seatName, shortName } from "./people";
import type { Place } from "./place";

const STANCE = { hold: "held", partial: "partly conceded", concede: "conceded" } as const;

/** The debate of one move: one thread per decision maker. */
export function Debate({
  view,
  consult,
  place,
  stale,
}: {
  view: RunView;
  consult: ConsultView;
  place: Place;
  stale: boolean;
}) {
  const one = consult.moves.find((move) => move.move_id === place.move);
  if (!one)
    return (
      <section className="panel deb" aria-label="Debate">
        <Empty title="Nothing to debate yet">A move appears here as soon as an analyst proposes it.</Empty>
      </section>
    );
  return <DebateOf key={one.move_id} view={view} consult={consult} one={one} place={place} stale={stale} />;
}

function DebateOf({
  view,
  consult,
  one,
  place,
  stale,
}: {
  view: RunView;
  consult: ConsultView;
  one: MoveView;
  place: Place;
  stale: boolean;
}) {
  const ids = seats(view);
  const state = moveState(one, view);
  const cells = stripOf(one, view, consult.rounds, ids);
  const begun = one.rounds.length > 0;
  return (
    <section className="panel deb" aria-label={`Debate on ${one.move_id}`}>
      <header className="dhd">
        <div className="row">
          <span className="mono muted">{one.move_id}</span>
          <span className="muted">{personaOf(consult, one.analyst)}</span>
          <span className="push">
            <DebateTag one={one} state={state} rounds={consult.rounds} round={currentRound(one, ids)} />
          </span>
        </div>
        <h2>{plain(one.title ?? "Being written")}</h2>
        <div className="row acts">
          <Button size="small" look="ghost" onClick={() => place.go({ doc: `${one.move_id}.md` })}>
            Read the proposal
          </Button>
          {one.check && (
            <span className="muted">
              {one.check.supported} of {one.check.numbers} numbers supported
            </span>
          )}
        </div>
      </header>
      {!begun && (
        <Empty title={one.vetoed ? "Vetoed" : "Not in debate yet"}>
          {one.vetoed ? "A user vetoed this move before its debate." : "Queued: it starts when a sandbox is free."}
        </Empty>
      )}
      {begun && (
        <Tabs.Root
          className="tabs"
          value={place.thread}
          onValueChange={(thread) => place.go({ thread, move: one.move_id }, "replace")}
        >
          <Tabs.List
            className="ths"
            aria-label="Critic against each decision maker"
            style={{ gridTemplateColumns: `repeat(${ids.length}, 1fr)` }}
          >
            {ids.map((id, seat) => (
              <Tabs.Trigger key={id} value={id} className={clsx("th", seatShape(seat))}>
                <span className="n">
                  <Mark shape={seatShape(seat)} />
                  <span title={seatName(view, id)}>{shortName(view, id)}</span>
                </span>
                <MiniStrip cells={cells.map((round) => round[seat] ?? "later")} />
              </Tabs.Trigger>
            ))}
          </Tabs.List>
          {ids.map((id, seat) => (
            <Tabs.Content key={id} value={id} className="tab" tabIndex={-1}>
              <Transcript
                view={view}
                one={one}
                id={id}
                seat={seat}
                live={state === "live"}
                stale={stale}
                cells={cells.map((round) => round[seat] ?? "later")}
              />
            </Tabs.Content>
          ))}
        </Tabs.Root>
      )}
      <footer className="dft">
        <DebateFoot view={view} one={one} state={state} stale={stale} />
      </footer>
    </section>
  );
}

function DebateTag({
  one,
  state,
  rounds,
  round,
}: {
  one: MoveView;
  state: ReturnType<typeof moveState>;
  rounds: number;
  round: number;
}) {
  if (one.scored)
    return one.scored.score === null ? (
      <Tag icon="warn">Not scored</Tag>
    ) : (
      <Tag icon="check">
        Scored {one.scored.score} / {one.scored.out_of}
      </Tag>
    );
  if (state === "live") return <Tag icon="run">{round > rounds ? "Being scored" : `Round ${round} of ${rounds}`}</Tag>;
  if (state === "stopped") return <Tag icon="pause">Stopped</Tag>;
  return <Tag icon="wait">{state === "vetoed" ? "Vetoed" : "Waiting"}</Tag>;
}

function Transcript({
  view,
  one,
  id,
  seat,
  live,
  stale,
  cells,
}: {
  view: RunView;
  one: MoveView;
  id: string;
  seat: number;
  live: boolean;
  stale: boolean;
  cells: Cell[];
}) {
  // Transcripts are not part of events. An event for this thread loads it again.
  const spoken = one.rounds.reduce((sum, round) => {
    const cell = round.threads[id];
    return sum + (cell?.critic ? 1 : 0) + (cell?.reply ? 1 : 0) + (round.threads["all"]?.critic ? 1 : 0);
  }, 0);
  const run = view.about.run_id;
  const { data, problem, reload } = useGet<DebateThread>(`/api/runs/${run}/moves/${one.move_id}/threads/${id}`, spoken);
  const turns = data?.turns ?? [];
  const feed = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(live);
  const last = turns.at(-1);
  const latest = one.rounds.at(-1);
  const current = latest?.threads[id];
  const awaited = !live
    ? undefined
    : current?.reply
      ? (latest?.round ?? 0) < cells.length
        ? ("critic" as const)
        : undefined
      : current?.critic || latest?.threads["all"]?.critic
        ? ("reply" as const)
        : ("critic" as const);
  // Without the event, the call waits for a free slot.
  const writing = latest?.status === (awaited === "critic" ? "critic_responding" : "dm_responding");
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to the end when the transcript grows
  useEffect(() => {
    const box = feed.current;
    if (follow && live && box) box.scrollTop = box.scrollHeight;
  }, [turns.length, awaited, follow, live]);
  if (problem && turns.length === 0)
    return (
      <Empty title="Could not load the transcript" action={<Button onClick={reload}>Try again</Button>}>
        <ProblemText problem={problem} />
      </Empty>
    );
  if (!data) return <Loading what="the debate" />;
  return (
    <>
      <div
        className="feed"
        ref={feed}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={`Transcript with ${seatName(view, id)}`}
        onScroll={(event) => {
          const box = event.currentTarget;
          setFollow(box.scrollHeight - box.scrollTop - box.clientHeight < 40);
        }}
      >
        {turns.map((turn, i) => (
          <Fragment key={`${turn.round}-${turn.role}-${i}`}>
            <TurnText
              turn={turn}
              first={turns[i - 1]?.round !== turn.round}
              name={turn.role === "critic" ? criticName(view) : seatName(view, id)}
              stance={turn.role === "critic" ? null : stanceOf(one, turn.round, id)}
              seat={seat}
            />
            {calculationsOf(one, turn, id).map((calculation) => (
              <Calculation key={calculation.id} calculation={calculation} />
            ))}
          </Fragment>
        ))}
        {awaited && (
          <article className={clsx("turn", awaited === "critic" ? "C" : seatShape(seat))}>
            <Mark shape={awaited === "critic" ? "C" : seatShape(seat)} />
            <div className="w">
              <span>{awaited === "critic" ? criticName(view) : seatName(view, id)}</span>
              <span className="muted">{stale ? "was writing" : writing ? "is writing…" : "is next"}</span>
              <span className="caret" aria-hidden="true" />
            </div>
            <div className="sk" aria-hidden="true">
              <i style={{ width: "92%" }} />
              <i style={{ width: "78%" }} />
              <i style={{ width: "54%" }} />
            </div>
          </article>
        )}
        {!live && last && cells.includes("skipped") && <p className="rnd">The thread ended after round {last.round}</p>}
      </div>
      {live && !follow && (
        <Button size="small" className="tolatest" onClick={() => setFollow(true)}>
          Follow live
        </Button>
      )}
    </>
  );
}

function stanceOf(one: MoveView, round: number, id: string): DebateStance | null {
  return one.rounds.find((known) => known.round === round)?.threads[id]?.stance ?? null;
}

function TurnText({
  turn,
  first,
  name,
  stance,
  seat,
}: {
  turn: ThreadTurn;
  first: boolean;
  name: string;
  stance: DebateStance | null;
  seat: number;
}) {
  const shape = turn.role === "critic" ? "C" : seatShape(seat);
  return (
    <>
      {first && <h3 className="rnd">Round {turn.round}</h3>}
      <article className={clsx("turn", shape)}>
        <Mark shape={shape} />
        <div className="w">
          <span>{name}</span>
          {stance && (
            <Tag>
              <i className={`st st-${stance[0]}`} />
              {STANCE[stance]}
            </Tag>
          )}
        </div>
        <AgentText text={turn.text} />
      </article>
    </>
  );
}

function DebateFoot({
  view,
  one,
  state,
  stale,
}: {
  view: RunView;
  one: MoveView;
  state: ReturnType<typeof moveState>;
  stale: boolean;
}) {
  const walls = one.isolation && isolationWords(one.isolation);
  if (one.scored) {
    const trouble = one.scored.degraded;
    return (
      <>
        {trouble.length > 0 ? (
          <Note>{trouble.map(degradedWords).join("; ")}</Note>
        ) : (
          <span>
            Finished after {one.scored.rounds_done} rounds{walls && `, ${walls}`}.
          </span>
        )}
        <Link className="push" to={`/runs/${view.about.run_id}/results#${one.move_id}`}>
          Why this score
        </Link>
      </>
    );
  }
  if (state === "live") {
    const last = one.last_turn;
    const seat = last ? seats(view).indexOf(last.role) : -1;
    const words = last ? `Latest: ${plain(last.preview)}` : "The critic opens";
    return (
      <>
        <Mark shape={seat < 0 ? "C" : seatShape(seat)} />
        <span className="ellip" title={words}>
          {words}
        </span>
        <span className="push muted">{stale ? "not live" : "following live"}</span>
      </>
    );
  }
  return (
    <span className="muted">
      {state === "stopped" ? "Continues when the run is resumed." : "The debate has not started."}
    </span>
  );
}
