// Selectors of a run's view. Pure.
import type {
  ConsultView,
  DebateDegradation,
  MoveView,
  ObjectionState,
  RoundView,
  RunView,
  StageProgress,
} from "../gen/run";
import type { Cell } from "../viz/heat-strip";
import type { Strand } from "../viz/strands";
import { count, plain } from "./format";
import { sumOf } from "./reduce";
import { isActive } from "./status";

export const LAYERS = ["Gather", "Infer", "Analyze", "Debate", "Rank"] as const;

/** Ids of the decision makers in the order of their threads; taken from the replies if the server sends no committee. */
export function seats(view: RunView): string[] {
  if (view.about.committee) return view.about.committee.decision_makers.map((seat) => seat.id);
  const found = new Set<string>();
  for (const one of view.consult?.moves ?? []) {
    for (const id of Object.keys(one.scored?.breakdown ?? {})) found.add(id);
    for (const round of one.rounds) for (const id of Object.keys(round.threads)) if (id !== "all") found.add(id);
  }
  return [...found].sort(byNumber);
}

/** `D10` sorts after `D9`; other ids sort alphabetically. */
export function byNumber(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

export type MoveState = "waiting" | "live" | "scored" | "vetoed" | "stopped";

export function moveState(one: MoveView, view: RunView): MoveState {
  if (one.scored) return "scored";
  if (one.vetoed) return "vetoed";
  if (one.rounds.length === 0) return "waiting";
  return isActive(view) ? "live" : "stopped";
}

/** The current round of a debate: the first that is not complete. */
export function currentRound(one: MoveView, ids: readonly string[]): number {
  const last = one.rounds.at(-1);
  if (!last) return 0;
  return isComplete(last, ids) ? last.round + 1 : last.round;
}

function isComplete(round: RoundView, ids: readonly string[]): boolean {
  return round.status === "dm_responded" || (ids.length > 0 && ids.every((id) => round.threads[id]?.reply));
}

/** The current round of a debate and its state, as a label short enough for its column; `…` means it is being written. */
export function progressWords(one: MoveView, ids: readonly string[], rounds: number): string {
  const current = currentRound(one, ids);
  if (current === 0) return "waiting";
  if (current > rounds) return "being scored";
  const round = one.rounds.find((known) => known.round === current);
  const threads = round?.threads ?? {};
  if (!Object.values(threads).some((cell) => cell.critic || cell.reply))
    return `round ${current}, critic${round?.status === "critic_responding" ? "…" : ""}`;
  const replied = ids.filter((id) => threads[id]?.reply).length;
  return `round ${current}, ${ids.length - replied} left${round?.status === "dm_responding" ? "…" : ""}`;
}

/** `cells[round][seat]` of a move's heat strip. */
export function stripOf(one: MoveView, view: RunView, rounds: number, ids: readonly string[]): Cell[][] {
  const state = moveState(one, view);
  const total = Math.max(rounds, one.rounds.at(-1)?.round ?? 0);
  const current = currentRound(one, ids);
  return Array.from({ length: total }, (_, i) => {
    const round = one.rounds.find((known) => known.round === i + 1);
    return ids.map((id): Cell => {
      const cell = round?.threads[id];
      if (cell?.reply) return cell.stance ?? "unknown";
      if (state === "live" && i + 1 === current) return "now";
      return state === "scored" || state === "stopped" ? "skipped" : "later";
    });
  });
}

/** The text of a heat strip for screen readers. */
export function stripWords(cells: readonly (readonly Cell[])[]): string {
  const flat = cells.flat();
  const those = (cell: Cell) => flat.filter((one) => one === cell).length;
  const said = flat.length - those("later") - those("now") - those("skipped");
  if (said === 0) return "no replies yet";
  return `${said} replies: ${those("hold")} held, ${those("partial")} partly conceded, ${those("concede")} conceded`;
}

export function strandsOf(view: RunView, consult: ConsultView): { strands: Strand[]; analysts: number } {
  const analysts = [...new Set(consult.agents.filter((agent) => agent.layer === 2).map((agent) => agent.agent_id))];
  const ids = seats(view);
  const strands = consult.moves.map((one): Strand => {
    const state = moveState(one, view);
    const done = one.rounds.filter((round) => round.status === "dm_responded");
    const conceded = one.rounds.flatMap((round) => {
      const conceding = ids.filter((id) => round.threads[id]?.stance === "concede").length;
      return conceding * 2 > ids.length ? [round.round - 1] : [];
    });
    const rank = consult.recommended.indexOf(one.move_id);
    return {
      id: one.move_id,
      analyst: one.analyst === null ? -1 : analysts.indexOf(one.analyst),
      passed: one.scored ? one.scored.rounds_done : done.length,
      conceded: new Set(conceded),
      state: state === "scored" ? "done" : state === "live" ? "live" : "waiting",
      rank: rank >= 0 ? rank : undefined,
    };
  });
  return { strands, analysts: Math.max(analysts.length, 1) };
}

/** The state of a stage. In a run that nobody executes, none is running. */
export function stageState(view: RunView, consult: ConsultView, layer: number): StageProgress | "stopped" {
  const state = consult.layers[layer]?.state ?? "waiting";
  return state === "running" && !isActive(view) ? "stopped" : state;
}

/** The number of stages that have started. */
export function reached(consult: ConsultView): number {
  return consult.layers.filter((layer) => layer.state !== "waiting").length;
}

export function personaOf(consult: ConsultView, agentId: string | null): string {
  if (agentId === null) return "";
  if (agentId === "you") return "You";
  return plain(consult.agents.find((agent) => agent.agent_id === agentId)?.persona ?? agentId);
}

/** A short summary of a stage. */
export function layerWords(view: RunView, consult: ConsultView, layer: number): string {
  const state = consult.layers[layer];
  const took = seconds(state?.started_at, state?.ended_at);
  const agents = consult.agents.filter((agent) => agent.layer === layer);
  switch (layer) {
    case 0: {
      if (consult.gathered) return `${count(consult.gathered.facts)} facts${took}`;
      return state?.state === "running" ? "reading filings" : "filings and facts";
    }
    case 1:
      if (state?.state !== "done") return agents.length > 0 ? `${agents.length} agents` : "F1, F2";
      return `${state.artifacts.map((name) => name.replace(/\.md$/, "")).join(", ")}${took}`;
    case 2: {
      if (state?.state === "waiting") return `${consult.expected_moves} moves`;
      return consult.moves.length > 0 ? `${consult.moves.length} moves` : `${agents.length} analysts`;
    }
    case 3: {
      const those = (wanted: MoveState) => consult.moves.filter((one) => moveState(one, view) === wanted).length;
      const [scored, live, waiting, stopped] = [those("scored"), those("live"), those("waiting"), those("stopped")];
      if (scored + live + stopped === 0) return `${consult.rounds} rounds each`;
      return [
        `${scored} scored`,
        live > 0 && `${live} in debate`,
        stopped > 0 && `${stopped} stopped`,
        waiting > 0 && `${waiting} waiting`,
      ]
        .filter(Boolean)
        .join(", ");
    }
    default:
      if (consult.recommended.length > 0) return `${consult.recommended.length} recommended`;
      return state?.state === "done" ? "none recommended" : "recommended moves";
  }
}

function seconds(from: string | null | undefined, to: string | null | undefined): string {
  if (!from || !to) return "";
  const took = (Date.parse(to) - Date.parse(from)) / 1000;
  if (!(took >= 1)) return "";
  return took < 120 ? `, ${Math.round(took)} s` : `, ${Math.round(took / 60)} min`;
}

/** Moves, best first: recommended, others in their order, then unranked moves by score. */
export function ranked(consult: ConsultView): MoveView[] {
  const order = [...consult.recommended, ...consult.other];
  const place = (one: MoveView) => {
    const at = order.indexOf(one.move_id);
    return at < 0 ? order.length : at;
  };
  return consult.moves
    .filter((one) => one.scored)
    .sort((a, b) => place(a) - place(b) || (b.scored?.score ?? 0) - (a.scored?.score ?? 0));
}

/** Sums by decision maker, in the order of seats. */
export function sumsOf(one: MoveView, ids: readonly string[]): number[] {
  return ids.map((id) => sumOf(one.scored?.breakdown[id] ?? {}));
}

/** The highest score of one decision maker. */
export function mostPerSeat(one: MoveView, ids: readonly string[]): number {
  return (one.scored?.out_of ?? 120) / Math.max(1, ids.length);
}

/** The metrics in the committee's order. */
export function metricsOf(view: RunView): string[] {
  if (view.about.committee) return view.about.committee.metrics.map((metric) => metric.id);
  const found = new Set<string>();
  for (const one of view.consult?.moves ?? [])
    for (const scores of Object.values(one.scored?.breakdown ?? {}))
      for (const metric of Object.keys(scores)) found.add(metric);
  return [...found].sort();
}

/** Names of the built-in committee that are too long for a row. */
const SHORT: Record<string, string> = {
  "Risk-Adjusted Return": "Risk-adj. return",
  "Strategic Alignment": "Strategic fit",
};

export function metricName(view: RunView, metric: string): string {
  const name = view.about.committee?.metrics.find((one) => one.id === metric)?.name ?? metric.replaceAll("_", " ");
  return SHORT[name] ?? name;
}

/** Labels for the state of the strongest objection: the words of `ObjectionState::word` in core. */
export const OBJECTION: Record<ObjectionState, { tone: "good" | "warn" | "bad"; name: string; short: string }> = {
  answered: { tone: "good", name: "Answered", short: "Answered" },
  partly: { tone: "warn", name: "Partly answered", short: "Partly" },
  open: { tone: "bad", name: "Open", short: "Open" },
  conceded: { tone: "bad", name: "Conceded", short: "Conceded" },
};

export function degradedWords(one: DebateDegradation): string {
  switch (one.degraded) {
    case "ended-early":
      return `${one.thread} ended after round ${one.after_round}: ${one.why}`;
    case "unstructured":
      return `${one.messages} ${one.messages === 1 ? "message" : "messages"} of ${one.thread} were not structured; their stances are unknown`;
    case "score-from-text":
      return `the score of ${one.decision_maker} was extracted from text`;
    case "neutral-score":
      return `${one.decision_maker} gave no score; neutral scores of 5 are used`;
    case "not-scored":
      return `${one.decision_maker} gave no usable scores, so the move is not ranked`;
    case "truncated":
      return `older rounds of ${one.chain} were summarised`;
    default:
      return "degraded";
  }
}

/** Whether a model wrote the evidence; every screen shows it. */
export function isSynthetic(consult: ConsultView): boolean {
  return consult.source === "synthetic" || consult.gathered?.provenance.from === "synthetic";
}
