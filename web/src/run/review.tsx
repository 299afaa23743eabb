import { type FormEvent, useId, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { EditMovesRequest } from "../gen/api";
import type { RunView } from "../gen/run";
import { plain } from "../model/format";
import { Button, Loading, Note, Tag } from "../ui/parts";

/** What `moothall moves --json` prints, as far as this page uses it. */
interface Moves {
  moves: {
    move_id: string;
    title: string;
    proposal: { title: string; thesis: string } & Record<string, unknown>;
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
export function ReviewMoves({ view, refresh }: { view: RunView; refresh: () => void }) {
  const path = `/api/runs/${view.about.run_id}/moves`;
  const asks = view.status.state === "paused" && view.status.reason === "question";
  const { data, problem, reload } = useGet<Moves>(asks ? path : null, view.as_of_seq);
  if (!asks) return null;
  return (
    <section className="panel reviewmoves" aria-label="Moves to review" id={MOVES_ID} tabIndex={-1}>
      {!data && !problem && <Loading what="the moves" />}
      {problem && (
        <Note tone="bad" alert>
          <b>Could not load the moves.</b> {problem.message} {problem.hint}{" "}
          <Button size="small" onClick={reload}>
            Try again
          </Button>
        </Note>
      )}
      {data && <MovesList data={data} path={path} view={view} reload={reload} refresh={refresh} />}
    </section>
  );
}

function MovesList({
  data,
  path,
  view,
  reload,
  refresh,
}: {
  data: Moves;
  path: string;
  view: RunView;
  reload: () => void;
  refresh: () => void;
}) {
  const may = useMay("review") !== false;
  const [problem, setProblem] = useState<Problem>();
  const send = async (to: string, body: unknown) => {
    try {
      await post(to, body);
      setProblem(undefined);
      return true;
    } catch (error) {
      setProblem(asProblem(error));
      return false;
    } finally {
      reload();
      refresh();
    }
  };
  const many = data.moves.length;
  return (
    <>
      <header>
        <h2>{many === 1 ? "1 move" : `${many} moves`} to review before the debates</h2>
        <span className="push">
          {may && data.changes.length > 0 && (
            <Button size="small" onClick={() => void send(path, { undo: { seal: data.seal } })}>
              Undo {data.changes.length === 1 ? "1 change" : `${data.changes.length} changes`}
            </Button>
          )}
          <Button
            size="small"
            look="primary"
            icon="play"
            onClick={() => void send(`/api/runs/${view.about.run_id}/resume`, {})}
          >
            Start the debates
          </Button>
        </span>
      </header>
      {problem && (
        <Note tone="bad" alert>
          <b>{problem.message}</b> {problem.hint}
        </Note>
      )}
      <ol>
        {data.moves.map((move) => (
          <MoveLine
            key={move.move_id}
            move={move}
            changes={data.changes}
            may={may}
            onChange={(change) => send(path, change)}
          />
        ))}
      </ol>
    </>
  );
}

function MoveLine({
  move,
  changes,
  may,
  onChange,
}: {
  move: Move;
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
        Why it is not debated (optional)
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
