import { useEffect, useRef } from "react";
import { useNavigate, useParams } from "react-router";
import type { ConsultView, RunView } from "../gen/run";
import { plain } from "../model/format";
import { isOver } from "../model/reduce";
import { LAYERS, reached } from "../model/select";
import { runTitle } from "../notify/notices";
import { CodeRun } from "../run/code-run";
import { Debate } from "../run/debate";
import { EvidenceSheets } from "../run/evidence";
import { ForkedFrom } from "../run/fork";
import { Banners, RunHead } from "../run/head";
import { Lanes } from "../run/lanes";
import { LayerPanel } from "../run/layers";
import { Meter } from "../run/meter";
import { Pipeline } from "../run/pipeline";
import { usePlace } from "../run/place";
import { RunProblem } from "../run/problem";
import { ReviewMoves } from "../run/review";
import type { LinkState } from "../stream/stream";
import { type LiveRun, useRun } from "../stream/use-run";
import { useAnnounce } from "../ui/announce";
import { Sheet } from "../ui/dialog";
import { useKeys } from "../ui/keys";
import { Empty, Loading } from "../ui/parts";
import { addressNow } from "../ui/use-address";
import { useMedia } from "../ui/use-width";

export default function Run() {
  const { runId = "" } = useParams();
  const run = useRun(runId);
  const { view, problem } = run;
  useEffect(() => {
    document.title = view ? runTitle(view) : "Moothall";
  }, [view]);
  if (!view) return problem && !problem.isOffline ? <RunProblem problem={problem} /> : <Loading what="the run" />;
  if (view.about.workflow === "consult") return <Consult run={run} view={view} />;
  return <CodeRun run={run} view={view} />;
}

function Consult({ run, view }: { run: LiveRun; view: RunView }) {
  const stale = !["live", "ended"].includes(run.link.kind);
  const { consult, about, status } = view;
  // While a person reviews the moves, the page scrolls as a whole.
  const asks = status.state === "paused" && status.reason === "question";
  const company = plain(consult?.gathered?.company ?? "").replace(/ \(fictional\)$/, "");
  return (
    <div className={asks ? "runpage loose" : "runpage"} data-stale={stale ? "" : undefined}>
      <RunHead
        view={view}
        link={run.link}
        title={company || plain(consult?.ticker ?? about.title)}
        {...(company && consult ? { code: plain(consult.ticker) } : {})}
        recheck={run.recheck}
      />
      <Banners view={view} link={run.link} recheck={run.recheck} />
      {about.parent && (
        <div className="banner">
          <ForkedFrom view={view} />
        </div>
      )}
      <Meter view={view} />
      <ReviewMoves view={view} refresh={run.refresh} recheck={run.recheck} />
      {consult ? (
        <Work view={view} consult={consult} link={run.link} stale={stale} />
      ) : (
        !isOver(view.status) && <Empty title="Preparing the run">The first event appears in a moment.</Empty>
      )}
    </div>
  );
}

function Work({
  view,
  consult,
  link,
  stale,
}: {
  view: RunView;
  consult: ConsultView;
  link: LinkState;
  stale: boolean;
}) {
  const place = usePlace(view, consult);
  const navigate = useNavigate();
  const narrow = useMedia("(max-width: 1180px)");
  useSpeak(view, consult, link);
  const step = (by: number) => {
    const move = addressNow().get("move") ?? place.move;
    const at = consult.moves.findIndex((one) => one.move_id === move);
    const next = consult.moves[Math.min(Math.max(at + by, 0), consult.moves.length - 1)];
    if (!next) return;
    place.go({ move: next.move_id, layer: "3" }, "replace");
    document.querySelector<HTMLElement>(`[data-move="${next.move_id}"]`)?.focus();
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ...Object.fromEntries(LAYERS.map((_, layer) => [String(layer), () => place.go({ layer: String(layer) })])),
    r: () => navigate(`/runs/${view.about.run_id}/results`),
    ["Escape"]: () => place.go({ layer: "all", move: null }),
  });
  const debate = <Debate view={view} consult={consult} place={place} stale={stale} />;
  const showsDebate = reached(consult) >= 3 && consult.moves.length > 0;
  return (
    <div className={showsDebate && !narrow ? "work" : "work alone"}>
      <div className="wl">
        <h2 className="sr">Pipeline</h2>
        <Pipeline view={view} consult={consult} place={place} />
        {place.layer === 3 ? (
          <Lanes view={view} consult={consult} place={place} />
        ) : (
          <LayerPanel view={view} consult={consult} place={place} />
        )}
      </div>
      {showsDebate &&
        (narrow ? (
          <Sheet
            look="debate"
            title={place.chosen ? `Debate on ${place.move}` : "Debate"}
            open={place.chosen && place.layer === 3}
            onClose={() => place.go({ move: null })}
          >
            {debate}
          </Sheet>
        ) : (
          debate
        ))}
      <EvidenceSheets view={view} />
    </div>
  );
}

/** Announces stage changes and scores to screen readers. */
function useSpeak(view: RunView, consult: ConsultView, link: LinkState): void {
  const say = useAnnounce();
  const layer = consult.layers.findLast((one) => one.state !== "waiting")?.layer;
  const scored = consult.moves.filter((one) => one.scored).length;
  const before = useRef({ layer, scored, state: view.status.state, link: link.kind });
  useEffect(() => {
    const last = before.current;
    before.current = { layer, scored, state: view.status.state, link: link.kind };
    if (view.status.state !== last.state) say(`The run is ${view.status.state}.`);
    else if (layer !== last.layer && layer !== undefined) say(`${LAYERS[layer]} has begun.`);
    else if (scored !== last.scored) say(`${scored} of ${consult.expected_moves} moves are scored.`);
    else if (link.kind === "waiting" && last.link === "live") say("Connection lost; reconnecting.");
  }, [layer, scored, view.status.state, link.kind, consult.expected_moves, say]);
}
