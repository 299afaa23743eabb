import { type FormEvent, useId, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { EditMovesRequest } from "../gen/api";
import type { ConsultView, RunFinding, RunView } from "../gen/run";
import { plain } from "../model/format";
import { personaOf } from "../model/select";
import { AgentText, AgentWords } from "../ui/agent-text";
import { CodeText, ProblemText } from "../ui/code-text";
import { FormProblem } from "../ui/form-problem";
import { Button, Loading, Note, Tag } from "../ui/parts";
import { type Recheck, usePending } from "./pending";

/** What `moothall moves --json` prints, as far as this page uses it. */
interface Moves {
  moves: {
    move_id: string;
    title: string;
    analyst: string;
    proposal: {
      title: string;
      thesis: string;
      actions: string[];
      risks: string[];
      cost: string;
      horizon: string;
    } & Record<string, unknown>;
    support: { supported: number; total: number };
    findings: RunFinding[];
    /** The hash of what is shown of the move: a change names what its author saw. */
    seal: string;
  }[];
  changes: { by: string; what: { veto?: { move_id: string; why?: string }; edit?: { move_id: string } } }[];
  /** The same for all changes together. */
  seal: string;
}

type Move = Moves["moves"][number];

/** The target of the banner's link. */
export const MOVES_ID = "moves-to-review";

/**
 * Review of the moves before the debates. It is rendered as soon as the run pauses, because the banner links to it, and
 * not only when the moves have been loaded.
 */
export function ReviewMoves({ view, refresh, recheck }: { view: RunView; refresh: () => void; recheck: Recheck }) {
  const path = `/api/runs/${view.about.run_id}/moves`;
  const asks = view.status.state === "paused" && view.status.reason === "question";
  const { data, problem, reload } = useGet<Moves>(asks ? path : null, view.as_of_seq);
  if (!asks) return null;
  return (
    <section className="panel reviewmoves" aria-label="Moves to review" id={MOVES_ID} tabIndex={-1}>
      {!data && !problem && <Loading what="the moves" />}
      {problem && (
        <Note tone="bad" alert>
          <b>Could not load the moves.</b> <ProblemText problem={problem} />{" "}
          <Button size="small" onClick={reload}>
            Try again
          </Button>
        </Note>
      )}
      {data && <MovesList data={data} path={path} view={view} reload={reload} refresh={refresh} recheck={recheck} />}
    </section>
  );
}

function MovesList({
  data,
  path,
  view,
  reload,
  refresh,
  recheck,
}: {
  data: Moves;
  path: string;
  view: RunView;
  reload: () => void;
  refresh: () => void;
  recheck: Recheck;
}) {
  const may = useMay("review") !== false;
  const mayRun = useMay("run") !== false;
  const pending = usePending(view, recheck);
  const [problem, setProblem] = useState<Problem>();
  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work();
      setProblem(undefined);
      return true;
    } catch (error) {
      setProblem(asProblem(error));
      return false;
    }
  };
  const send = async (change: EditMovesRequest) => {
    const isAccepted = await attempt(() => post(path, change));
    reload();
    refresh();
    return isAccepted;
  };
  // The panel goes away with the first event of the debates.
  const start = () => attempt(() => pending.request("resume", () => post(`/api/runs/${view.about.run_id}/resume`)));
  const many = data.moves.length;
  return (
    <>
      <header>
        <h2>Review {many === 1 ? "1 move" : `${many} moves`} before the debates</h2>
        <span className="push">
          {may && data.changes.length > 0 && (
            <Button size="small" onClick={() => void send({ undo: { seal: data.seal } })}>
              Undo {data.changes.length === 1 ? "1 change" : `${data.changes.length} changes`}
            </Button>
          )}
          {mayRun && (
            <Button look="primary" icon="play" disabled={pending.what !== undefined} onClick={() => void start()}>
              {pending.what ? "Starting…" : "Start debates"}
            </Button>
          )}
        </span>
      </header>
      <FormProblem problem={problem} />
      <ol>
        {data.moves.map((move) => (
          <MoveLine
            key={move.move_id}
            move={move}
            consult={view.consult}
            changes={data.changes}
            may={may}
            onChange={send}
          />
        ))}
      </ol>
    </>
  );
}

function MoveLine({
  move,
  consult,
  changes,
  may,
  onChange,
}: {
  move: Move;
  consult: ConsultView | null;
  changes: Moves["changes"];
  may: boolean;
  onChange: (change: EditMovesRequest) => Promise<boolean>;
}) {
  const [form, setForm] = useState<"veto" | "edit">();
  // The version when the form was opened: another user may change the move while this one is editing.
  const [seen, setSeen] = useState(move);
  const open = (next: "veto" | "edit") => {
    setSeen(move);
    setForm(form === next ? undefined : next);
  };
  const about = changes.findLast(({ what }) => (what.veto ?? what.edit)?.move_id === move.move_id);
  const change = async (body: EditMovesRequest) => {
    if (await onChange(body)) setForm(undefined);
  };
  return (
    <li>
      <div className="reviewline">
        <span className="mono muted">{move.move_id}</span>
        <span className="agent" dir="auto">
          {plain(move.title)}
        </span>
        {about?.what.veto && <Tag tone="bad">vetoed</Tag>}
        {about?.what.edit && <Tag tone="warn">edited</Tag>}
        {may && (
          <span className="reviewacts">
            <Button size="small" look="ghost" onClick={() => open("edit")}>
              Edit<span className="sr"> {move.move_id}</span>
            </Button>
            {!about?.what.veto && (
              <Button size="small" look="ghost" onClick={() => open("veto")}>
                Veto<span className="sr"> {move.move_id}</span>
              </Button>
            )}
          </span>
        )}
      </div>
      <Proposal move={move} author={consult ? personaOf(consult, move.analyst) : plain(move.analyst)} />
      {about?.what.veto?.why && <p className="muted reviewwhy">{plain(about.what.veto.why)}</p>}
      {form && seen.seal !== move.seal && (
        <Theirs move={move} by={about?.by} onSeen={() => setSeen(move)} onDrop={() => setForm(undefined)} />
      )}
      {form === "veto" && <VetoForm onVeto={(why) => change({ veto: { move: move.move_id, why, seal: seen.seal } })} />}
      {form === "edit" && (
        <EditForm
          move={move}
          onEdit={(title, thesis) =>
            change({ edit: { move: move.move_id, proposal: { ...move.proposal, title, thesis }, seal: seen.seal } })
          }
        />
      )}
    </li>
  );
}

/** What a reviewer needs to decide: reasons, cost, risks, and how well the numbers are supported. */
function Proposal({ move, author }: { move: Move; author: string }) {
  const { thesis, cost, horizon, actions, risks } = move.proposal;
  const { supported, total } = move.support;
  const unsupported = move.findings.filter((finding) => finding.severity !== "note");
  return (
    <div className="moveproposal">
      <AgentText text={thesis} />
      <dl className="factline">
        <div>
          <dt className="lab">Analyst</dt>
          <dd>{author}</dd>
        </div>
        <div>
          <dt className="lab">Cost</dt>
          <dd className="agent">
            <AgentWords text={cost} />
          </dd>
        </div>
        <div>
          <dt className="lab">Horizon</dt>
          <dd className="agent">
            <AgentWords text={horizon} />
          </dd>
        </div>
        <div>
          <dt className="lab">Numbers</dt>
          <dd className={supported < total ? "warntext" : undefined}>
            {supported} of {total} supported
          </dd>
        </div>
      </dl>
      {unsupported.length > 0 && (
        <ul className="findings">
          {unsupported.map((finding, i) => (
            <li key={i}>
              <Tag tone={finding.severity === "warn" ? "warn" : "bad"}>{finding.severity}</Tag>{" "}
              <CodeText text={finding.message} />
            </li>
          ))}
        </ul>
      )}
      {risks.length > 0 && (
        <div>
          <span className="lab">Risks</span>
          <TextList items={risks} />
        </div>
      )}
      <details className="more">
        <summary>{actions.length === 1 ? "1 action" : `${actions.length} actions`}</summary>
        <TextList items={actions} />
      </details>
    </div>
  );
}

function TextList({ items }: { items: readonly string[] }) {
  return (
    <ul className="agent">
      {items.map((item, i) => (
        <li key={i}>
          <AgentWords text={item} />
        </li>
      ))}
    </ul>
  );
}

/** A conflict: another user changed the move while this one was editing. Both versions are shown. */
function Theirs({
  move,
  by,
  onSeen,
  onDrop,
}: {
  move: Move;
  by: string | undefined;
  onSeen: () => void;
  onDrop: () => void;
}) {
  return (
    <Note alert icon="person">
      <b>
        {by
          ? `${plain(by)} changed ${move.move_id} while you were editing.`
          : `A change to ${move.move_id} was undone.`}
      </b>{" "}
      Current text:
      <blockquote className="agent theirs" dir="auto">
        {plain(move.proposal.title)}
        <br />
        {plain(move.proposal.thesis)}
      </blockquote>
      <Button size="small" onClick={onSeen}>
        Replace it with my version
      </Button>{" "}
      <Button size="small" onClick={onDrop}>
        Discard my version
      </Button>
    </Note>
  );
}

function VetoForm({ onVeto }: { onVeto: (why: string) => Promise<void> }) {
  const id = useId();
  const [why, setWhy] = useState("");
  const send = (event: FormEvent) => {
    event.preventDefault();
    void onVeto(why.trim());
  };
  return (
    <form className="reviewform" onSubmit={send}>
      <label className="lab" htmlFor={id}>
        Reason for removing it (optional)
      </label>
      <textarea id={id} rows={2} maxLength={500} value={why} onChange={(event) => setWhy(event.target.value)} />
      <Button size="small" look="primary" type="submit">
        Veto
      </Button>
    </form>
  );
}

function EditForm({ move, onEdit }: { move: Move; onEdit: (title: string, thesis: string) => Promise<void> }) {
  const id = useId();
  const [title, setTitle] = useState(move.proposal.title);
  const [thesis, setThesis] = useState(move.proposal.thesis);
  const send = (event: FormEvent) => {
    event.preventDefault();
    void onEdit(title.trim(), thesis.trim());
  };
  return (
    <form className="reviewform" onSubmit={send}>
      <label className="lab" htmlFor={`${id}-title`}>
        Title
      </label>
      <textarea id={`${id}-title`} rows={1} value={title} onChange={(event) => setTitle(event.target.value)} />
      <label className="lab" htmlFor={`${id}-thesis`}>
        Why it is right; numbers are checked against the filings
      </label>
      <textarea id={`${id}-thesis`} rows={4} value={thesis} onChange={(event) => setThesis(event.target.value)} />
      <Button size="small" look="primary" type="submit" disabled={title.trim() === "" || thesis.trim() === ""}>
        Keep
      </Button>
    </form>
  );
}
