// The reducer of a run's events, the same as `view.rs` in `moothall-core`: the server sends a snapshot and the page
// applies later events. Both must give the same view; `fixtures/` has runs and views that both are tested with.
//
// Pure. A batch copies each changed object once and shares the rest, which limits rendering to what changed.
import type {
  AttemptView,
  ClaimCheckView,
  ConsultView,
  EventEnvelope,
  FindingSeverity,
  IsolationClass,
  MoveView,
  ProgramView,
  RoundView,
  RunFinding,
  RunStatus,
  RunVerdict,
  RunView,
  TurnView,
} from "../gen/run";
import { ROLE } from "./roles";

/** Weakest first. */
const CLASSES: readonly IsolationClass[] = ["none", "shared-kernel", "emulated-vm", "user-kernel", "hardware-vm"];
const SEVERITIES: readonly FindingSeverity[] = ["note", "warn", "escalate", "block"];
const LAYERS = 5;

export function fold(view: RunView, events: readonly EventEnvelope[]): RunView {
  const draft = new Draft(view);
  for (const event of events) draft.apply(event);
  return draft.view;
}

/** Whether nothing can follow. */
export function isTerminal(event: EventEnvelope): boolean {
  return ["run_finished", "pipeline_complete", "run_failed", "run_cancelled"].includes(event.type);
}

export function isOver(status: RunStatus): boolean {
  return status.state === "complete" || status.state === "failed" || status.state === "cancelled";
}

/** The view of a run before its first event. */
export function forget(view: RunView): RunView {
  return {
    as_of_seq: 0,
    about: view.about,
    status: { state: "running" },
    started_at: null,
    updated_at: null,
    ended_at: null,
    usage: {
      calls: 0,
      extra_calls: 0,
      failed_calls: 0,
      rejected: 0,
      prompt_tokens: 0,
      cached_tokens: 0,
      output_tokens: 0,
      cost_micro_usd: 0,
      unpriced_calls: 0,
    },
    costs: [],
    isolation: null,
    fallbacks: [],
    consult: null,
    code: null,
  };
}

export function weaker(one: IsolationClass | null, other: IsolationClass): IsolationClass {
  return one !== null && CLASSES.indexOf(one) < CLASSES.indexOf(other) ? one : other;
}

export function verdictOf(findings: readonly RunFinding[]): RunVerdict {
  const heaviest = Math.max(-1, ...findings.map((finding) => SEVERITIES.indexOf(finding.severity)));
  return heaviest >= 3 ? "fail" : heaviest === 2 ? "needs-person" : "pass";
}

class Draft {
  view: RunView;
  /** Objects that this batch has copied and may change in place. */
  private readonly own = new WeakSet<object>();

  constructor(view: RunView) {
    this.view = view;
  }

  apply(event: EventEnvelope): void {
    if (event.seq <= this.view.as_of_seq) return;
    this.view = this.mine(this.view);
    const view = this.view;
    view.as_of_seq = event.seq;
    view.started_at ??= event.at;
    view.updated_at = event.at;
    view.status = statusAfter(event);
    if (isTerminal(event)) view.ended_at = event.at;
    this.count(event);
    this.walls(event);
    switch (event.type) {
      case "consult_started":
        view.consult = this.fresh(consultation(event));
        break;
      case "attempt_started":
        this.startAttempt(event.attempt, event.of);
        break;
      default:
        if (view.consult) {
          view.consult = this.mine(view.consult);
          this.consult(view.consult, event);
        }
        if (view.code) {
          view.code = this.mine(view.code);
          this.code(view.code, event);
        }
    }
  }

  private count(event: EventEnvelope): void {
    if (event.type !== "model_replied" && event.type !== "model_failed" && event.type !== "output_rejected") return;
    this.view.usage = this.mine(this.view.usage);
    const usage = this.view.usage;
    if (event.type === "output_rejected") {
      usage.rejected += 1;
      return;
    }
    if (asksAgain(event.effect_id)) usage.extra_calls += 1;
    else usage.calls += 1;
    if (event.type === "model_failed") {
      usage.failed_calls += 1;
      return;
    }
    const used = event.usage;
    usage.prompt_tokens += used.input + used.cache_read + used.cache_write_5m + used.cache_write_1h;
    usage.cached_tokens += used.cache_read;
    usage.output_tokens += used.output;
    if (event.cost_micro_usd === null) usage.unpriced_calls += 1;
    else usage.cost_micro_usd += event.cost_micro_usd;
    this.countCosts(event);
    this.countFallback(event);
  }

  private countCosts(event: Extract<EventEnvelope, { type: "model_replied" }>): void {
    const { purpose, model, usage: used } = event;
    const at = this.view.costs.findIndex((row) => row.purpose === purpose && row.model === model);
    const before = this.view.costs[at];
    const row = {
      purpose,
      model,
      calls: (before?.calls ?? 0) + 1,
      prompt_tokens:
        (before?.prompt_tokens ?? 0) + used.input + used.cache_read + used.cache_write_5m + used.cache_write_1h,
      output_tokens: (before?.output_tokens ?? 0) + used.output,
      cost_micro_usd: (before?.cost_micro_usd ?? 0) + (event.cost_micro_usd ?? 0),
      unpriced_calls: (before?.unpriced_calls ?? 0) + (event.cost_micro_usd === null ? 1 : 0),
    };
    this.view.costs = before ? this.view.costs.with(at, row) : [...this.view.costs, row];
  }

  /** The same table as `FallbackUse::count` in `moothall-core`. */
  private countFallback(event: Extract<EventEnvelope, { type: "model_replied" }>): void {
    const instead = event.instead_of;
    if (!instead) return;
    const [role, model, fallback] = [ROLE[event.purpose] ?? "other", instead.model, event.model];
    const place = event.effect_id.split("/")[0] ?? "";
    const rows = this.view.model_fallbacks ?? [];
    const at = rows.findIndex((row) => row.role === role && row.model === model && row.fallback === fallback);
    const before = rows[at];
    const answers = { ...before?.answers, [place]: (before?.answers[place] ?? 0) + 1 };
    const row = { role, model, fallback, reason: before?.reason ?? instead.reason, answers };
    this.view.model_fallbacks = before ? rows.with(at, row) : [...rows, row];
  }

  private walls(event: EventEnvelope): void {
    if (event.type !== "isolation" && event.type !== "executed") return;
    const { view } = this;
    view.isolation = weaker(view.isolation, event.class);
    const reason = event.type === "isolation" ? event.fallback : undefined;
    if (reason && !view.fallbacks.includes(reason)) view.fallbacks = [...view.fallbacks, reason];
  }

  private consult(consult: ConsultView, event: EventEnvelope): void {
    switch (event.type) {
      case "layer_start":
        consult.layers = patched(consult.layers, (layer) => layer.layer === event.layer, {
          state: "running",
          started_at: event.at,
        });
        break;
      case "layer_complete":
        if (event.gathered) consult.gathered = event.gathered;
        consult.layers = patched(consult.layers, (layer) => layer.layer === event.layer, {
          state: "done",
          ended_at: event.at,
          artifacts: event.artifacts,
        });
        break;
      case "agent_start":
        consult.agents = [
          ...consult.agents,
          {
            layer: event.layer,
            agent_id: event.agent_id,
            persona: event.persona,
            state: "running",
            started_at: event.at,
            ended_at: null,
            outputs: [],
          },
        ];
        break;
      case "agent_complete":
        consult.agents = patched(consult.agents, (agent) => agent.agent_id === event.agent_id, {
          state: "done",
          ended_at: event.at,
          outputs: event.outputs,
        });
        for (const moveId of event.outputs.flatMap(moveOf)) {
          const one = this.one(consult, moveId);
          one.analyst = event.agent_id;
          one.title = event.titles?.[moveId] ?? null;
        }
        break;
      case "claim_checked":
        this.checked(consult, {
          document: event.document,
          numbers: event.numbers,
          supported: event.supported,
          findings: event.flagged,
          rewrite: event.rewrite,
        });
        break;
      case "moves_reviewed":
        for (const moveId of event.vetoed) this.one(consult, moveId).vetoed = true;
        for (const moveId of [...event.edited, ...event.added]) {
          const one = this.one(consult, moveId);
          one.title = event.titles?.[moveId] ?? one.title;
          one.by_person = true;
        }
        break;
      case "isolation": {
        const one = this.one(consult, event.move);
        one.isolation = weaker(one.isolation, event.class);
        break;
      }
      case "sandbox_round":
        this.round(consult, event.move, event.round).status = event.status;
        break;
      case "sandbox_turn":
        this.spoke(consult, event.move, {
          turn_id: event.effect_id,
          at: event.at,
          thread: event.thread,
          round: event.round,
          role: event.role,
          preview: event.preview,
          stance: event.stance ?? null,
          cites: event.cites,
        });
        break;
      case "calculated": {
        const one = this.one(consult, event.move);
        one.calculations = [...(one.calculations ?? []), event.calculation];
        break;
      }
      case "sandbox_scored": {
        const given = Object.values(event.breakdown).filter((scores) => Object.keys(scores).length > 0);
        const sums = given.map(sumOf);
        const isScored = !event.degraded?.some((one) => one.degraded === "not-scored");
        this.one(consult, event.move).scored = {
          score: isScored ? event.score : null,
          out_of: event.out_of,
          breakdown: event.breakdown,
          spread: sums.length > 0 ? Math.max(...sums) - Math.min(...sums) : 0,
          rounds_done: event.rounds_done,
          degraded: event.degraded ?? [],
          key_objection: event.key_objection ?? null,
          reasoning: event.reasoning ?? {},
        };
        break;
      }
      case "verdict_updated":
        consult.verdict = {
          stage: event.stage,
          again: event.again,
          headline: event.headline,
          warning: event.warning ?? null,
          stability: event.stability ?? null,
          control_scores: event.control_scores ?? {},
          tiers: event.tiers,
        };
        break;
      case "pipeline_complete":
        consult.recommended = event.recommended;
        consult.other = event.other;
        consult.close_calls = event.close_calls ?? [];
        break;
      default:
        break;
    }
  }

  private checked(consult: ConsultView, check: ClaimCheckView): void {
    const [moveId] = moveOf(check.document);
    if (moveId !== undefined) {
      const one = this.one(consult, moveId);
      one.held = !check.rewrite && verdictOf(check.findings) !== "pass";
      one.check = check;
      return;
    }
    const at = consult.checks.findIndex((one) => one.document === check.document);
    consult.checks = at < 0 ? [...consult.checks, check] : consult.checks.with(at, check);
  }

  private spoke(consult: ConsultView, moveId: string, turn: TurnView): void {
    const round = this.round(consult, moveId, turn.round);
    round.threads = this.mine(round.threads);
    const cell = this.mine(round.threads[turn.thread] ?? { critic: null, reply: null, stance: null });
    round.threads[turn.thread] = cell;
    if (turn.role === "critic") cell.critic = turn.turn_id;
    else {
      cell.reply = turn.turn_id;
      cell.stance = turn.stance;
    }
    this.one(consult, moveId).last_turn = turn;
  }

  /** The move; inserted in order if it is new. Another debate (`m7/d2`, `m0`) is added at the end. */
  private one(consult: ConsultView, moveId: string): MoveView {
    if (!/^m[0-9]+$/.test(moveId) || moveId === "m0") {
      consult.other_debates = this.mine(consult.other_debates);
      const known = consult.other_debates.findIndex((one) => one.move_id === moveId);
      if (known < 0) consult.other_debates.push(emptyMove(moveId));
      return this.mineAt(consult.other_debates, known < 0 ? consult.other_debates.length - 1 : known);
    }
    consult.moves = this.mine(consult.moves);
    let at = consult.moves.findIndex((one) => one.move_id === moveId);
    if (at < 0) {
      at = consult.moves.findIndex((one) => comesBefore(moveId, one.move_id));
      if (at < 0) at = consult.moves.length;
      consult.moves.splice(at, 0, emptyMove(moveId));
    }
    return this.mineAt(consult.moves, at);
  }

  private round(consult: ConsultView, moveId: string, round: number): RoundView {
    const one = this.one(consult, moveId);
    one.rounds = this.mine(one.rounds);
    let at = one.rounds.findIndex((known) => known.round >= round);
    if (at < 0) at = one.rounds.length;
    if (one.rounds[at]?.round !== round) one.rounds.splice(at, 0, { round, status: null, threads: {} });
    return this.mineAt(one.rounds, at);
  }

  private startAttempt(attempt: number, of: number): void {
    const code = this.view.code ? this.mine(this.view.code) : this.fresh<ProgramView>({ of, attempts: [] });
    this.view.code = code;
    code.of = of;
    if (code.attempts.some((one) => one.attempt === attempt)) return;
    code.attempts = [...code.attempts, emptyAttempt(attempt)];
  }

  private code(code: ProgramView, event: EventEnvelope): void {
    const last = code.attempts.at(-1);
    const patch = (attempt: number, change: Partial<AttemptView>) => {
      code.attempts = patched(code.attempts, (one) => one.attempt === attempt, change);
    };
    switch (event.type) {
      case "output_rejected":
        if (last) patch(last.attempt, { rejected: [...last.rejected, ...event.problems] });
        break;
      case "code_generated":
        patch(event.attempt, {
          program: {
            effect_id: event.effect_id,
            code_sha256: event.code_sha256,
            code_lines: event.code_lines,
            dependencies: event.dependencies,
            confidence_permille: event.confidence_permille ?? null,
          },
        });
        break;
      case "executed": {
        const executed = {
          exit: event.exit,
          engine: event.engine,
          class: event.class,
          stdout_bytes: event.stdout_bytes,
          stderr_bytes: event.stderr_bytes,
          files: event.files ?? {},
        };
        patch(event.attempt, event.effect_id.endsWith("/check") ? { checked: executed } : { executed });
        break;
      }
      case "judged":
        patch(event.attempt, { findings: event.findings, verdict: verdictOf(event.findings) });
        break;
      case "critiqued":
        patch(event.attempt, { critique: event.text });
        break;
      default:
        break;
    }
  }

  /** A copy that this batch may change; the object itself if it is one already. */
  private mine<T extends object>(value: T): T {
    if (this.own.has(value)) return value;
    return this.fresh((Array.isArray(value) ? [...value] : { ...value }) as T);
  }

  private mineAt<T extends object>(list: T[], at: number): T {
    const value = this.mine(list[at] as T);
    list[at] = value;
    return value;
  }

  private fresh<T extends object>(value: T): T {
    this.own.add(value);
    return value;
  }
}

/** The list with one entry replaced. */
function patched<T extends object>(list: T[], is: (entry: T) => boolean, change: Partial<T>): T[] {
  return list.map((entry) => (is(entry) ? { ...entry, ...change } : entry));
}

function statusAfter(event: EventEnvelope): RunStatus {
  switch (event.type) {
    case "run_paused":
      return { state: "paused", reason: event.reason, detail: event.detail };
    case "pipeline_complete":
    case "run_finished":
      return { state: "complete", verdict: event.verdict };
    case "run_failed":
      return {
        state: "failed",
        detail: event.detail,
        ...(event.model_failure && { model_failure: event.model_failure }),
      };
    case "run_cancelled":
      return { state: "cancelled" };
    // No event reports that a run continues.
    default:
      return { state: "running" };
  }
}

function consultation(event: Extract<EventEnvelope, { type: "consult_started" }>): ConsultView {
  return {
    ticker: event.ticker,
    listed: event.listed ?? true,
    rounds: event.rounds,
    expected_moves: event.moves,
    source: event.provenance,
    expected_calls: event.est_calls,
    gathered: null,
    layers: Array.from({ length: LAYERS }, (_, layer) => ({
      layer,
      state: "waiting" as const,
      started_at: null,
      ended_at: null,
      artifacts: [],
    })),
    agents: [],
    checks: [],
    moves: [],
    recommended: [],
    other: [],
    close_calls: [],
    other_debates: [],
    verdict: null,
  };
}

function emptyMove(moveId: string): MoveView {
  return {
    move_id: moveId,
    title: null,
    analyst: null,
    check: null,
    held: false,
    vetoed: false,
    by_person: false,
    isolation: null,
    rounds: [],
    last_turn: null,
    scored: null,
  };
}

function emptyAttempt(attempt: number): AttemptView {
  return {
    attempt,
    rejected: [],
    program: null,
    executed: null,
    checked: null,
    findings: null,
    verdict: null,
    critique: null,
  };
}

/** Whether a call asks a model to correct its answer. */
function asksAgain(effectId: string): boolean {
  const last = effectId.split("/").at(-1) ?? "";
  return last === "rewrite" || last.startsWith("ask-");
}

/** The id of a move's document: `m7` for `m7.md`; none for other documents. */
function moveOf(document: string): string[] {
  const found = /^(m[0-9]+)\.md$/.exec(document)?.[1];
  return found === undefined ? [] : [found];
}

/** `m10` sorts after `m9`; ids without a number sort last. */
function comesBefore(one: string, other: string): boolean {
  const [a, b] = [numberOf(one), numberOf(other)];
  return a === b ? one < other : a < b;
}

function numberOf(moveId: string): number {
  const digits = moveId.replace(/^[^0-9]+/, "");
  return /^[0-9]+$/.test(digits) ? Number(digits) : Number.MAX_SAFE_INTEGER;
}

export function sumOf(scores: { [metric in string]: number }): number {
  return Object.values(scores).reduce((sum, score) => sum + score, 0);
}
