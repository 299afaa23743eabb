import { type FormEvent, useState } from "react";
import { Link, useNavigate } from "react-router";
import { asProblem, type Problem, post } from "../api/client";
import { useMay } from "../api/session";
import type { ForkRunRequest, StartRunResponse, VerdictMode } from "../gen/api";
import type { ForkChange, RunView } from "../gen/run";
import { plain, shortId } from "../model/format";
import { ProblemText } from "../ui/code-text";
import { Sheet } from "../ui/dialog";
import { Field } from "../ui/field";
import { Button, Note, Segmented } from "../ui/parts";
import { VerdictModes } from "../ui/verdict-modes";

type From = ForkRunRequest["from"];

const FROM: { value: From; name: string }[] = [
  { value: "debates", name: "Debates" },
  { value: "moves", name: "Moves" },
];

/** What a fork reuses and what it executes again. */
const ABOUT: Record<From, string> = {
  debates: "Reuses evidence, inference and moves; debates and ranks the moves again.",
  moves: "Reuses evidence and inference; proposes, debates and ranks moves again.",
};

/** Starts a new run from the results of this one. */
export function ForkAction({ view }: { view: RunView }) {
  const may = useMay("run");
  const [open, setOpen] = useState(false);
  const isReady = view.consult?.layers[1]?.state === "done";
  if (!isReady || may === false) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>Fork</Button>
      <Sheet title="Fork this run" open={open} onClose={() => setOpen(false)}>
        <ForkForm view={view} onStarted={() => setOpen(false)} />
      </Sheet>
    </>
  );
}

export function ForkForm({ view, onStarted }: { view: RunView; onStarted: () => void }) {
  const navigate = useNavigate();
  const hasMoves = view.consult?.layers[2]?.state === "done";
  const [from, setFrom] = useState<From>(hasMoves ? "debates" : "moves");
  const [critic, setCritic] = useState("");
  const [verdict, setVerdict] = useState<"" | VerdictMode>("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    const model = critic.trim();
    const body: ForkRunRequest = { from, ...(model && { set: { critic: model } }), ...(verdict && { verdict }) };
    try {
      // A request sent twice, by a lost response, starts one run.
      const headers = { "idempotency-key": crypto.randomUUID() };
      const { run_id } = await post<StartRunResponse>(`/api/runs/${view.about.run_id}/fork`, body, headers);
      onStarted();
      navigate(`/runs/${run_id}`);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <form className="pick fork" onSubmit={start}>
      <p>A fork is a new run. Results that it reuses cost nothing.</p>
      <div>
        <span className="lab">Start again from</span>
        <Segmented label="Start again from" options={hasMoves ? FROM : FROM.slice(1)} value={from} onChange={setFrom} />
      </div>
      <p className="muted">{ABOUT[from]}</p>
      <Field label="Model of the critic">
        <input
          value={critic}
          placeholder="as before"
          autoComplete="off"
          spellCheck={false}
          maxLength={120}
          onChange={(event) => setCritic(event.target.value)}
        />
      </Field>
      <Field label="Verdict">
        <select value={verdict} onChange={(event) => setVerdict(event.target.value as "" | VerdictMode)}>
          <option value="">as before</option>
          <VerdictModes />
        </select>
      </Field>
      {problem && (
        <Note tone="bad" alert>
          <ProblemText problem={problem} />
        </Note>
      )}
      <Button look="primary" type="submit" disabled={busy}>
        {busy ? "Starting" : "Start fork"}
      </Button>
      <p className="muted">
        <code>moothall fork {shortId(view.about.run_id)} --help</code> lists more settings.
      </p>
    </form>
  );
}

/** The parent of a fork, what differs, and a comparison of the results. */
export function ForkedFrom({ view }: { view: RunView }) {
  const { parent, run_id } = view.about;
  if (!parent) return null;
  const hasResults = view.consult?.moves.some((one) => one.scored);
  return (
    <Note tone="neutral" icon="compare">
      <b>
        Forked from <Link to={`/runs/${parent.run_id}`}>{shortId(parent.run_id)}</Link>
      </b>{" "}
      at the {parent.from}. {changeWords(parent.changes)}{" "}
      {hasResults && parent.changes && (
        <Link to={`/runs/${run_id}/results?vs=${parent.run_id}`}>Compare the results</Link>
      )}
    </Note>
  );
}

export function changeWords(changes: ForkChange[] | undefined): string {
  if (!changes) return "The earlier run was deleted.";
  if (changes.length === 0) return "No setting was changed.";
  const words = changes.map(({ setting, before, after }) =>
    setting === "brief" ? "another brief" : `${plain(setting)}: ${plain(before)} → ${plain(after)}`,
  );
  return `Changed: ${words.join("; ")}.`;
}
