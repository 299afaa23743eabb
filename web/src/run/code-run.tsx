import clsx from "clsx";
import type { AttemptView, ExecutionView, Exit, RunFinding, RunVerdict, RunView } from "../gen/run";
import { count, plain, shortId } from "../model/format";
import { isOver } from "../model/reduce";
import type { LiveRun } from "../stream/use-run";
import { AgentText } from "../ui/agent-text";
import { CodeText } from "../ui/code-text";
import { Icon, type IconName } from "../ui/icon";
import { Empty, Tag, type Tone } from "../ui/parts";
import { Banners, RunHead } from "./head";
import { isolationWords } from "./isolation";
import { Meter } from "./meter";

const VERDICT: Record<RunVerdict, { tone: Tone; icon: IconName; word: string }> = {
  pass: { tone: "good", icon: "check", word: "Passed" },
  "needs-person": { tone: "warn", icon: "person", word: "Needs a person" },
  fail: { tone: "bad", icon: "close", word: "Failed" },
};

/** A program run: each attempt with its output, findings and critique. */
export function CodeRun({ run, view }: { run: LiveRun; view: RunView }) {
  const attempts = view.code?.attempts ?? [];
  return (
    <div className="runpage loose">
      <RunHead view={view} link={run.link} title={plain(view.about.title)} recheck={run.recheck} />
      <Banners view={view} link={run.link} recheck={run.recheck} />
      <Meter view={view} />
      <div className="attempts">
        {attempts.length === 0 && !isOver(view.status) && (
          <Empty title="The first program is being written">Attempts appear here one after the other.</Empty>
        )}
        {attempts.map((attempt) => (
          <AttemptCard key={attempt.attempt} attempt={attempt} of={view.code?.of ?? 0} run={view.about.run_id} />
        ))}
        {view.status.state === "complete" && <Outcome verdict={view.status.verdict} attempts={attempts.length} />}
      </div>
    </div>
  );
}

function Outcome({ verdict, attempts }: { verdict: RunVerdict; attempts: number }) {
  const { tone, icon, word } = VERDICT[verdict];
  return (
    <p className="outcome">
      <Tag tone={tone} icon={icon}>
        {word}
      </Tag>
      <span>
        after {attempts} {attempts === 1 ? "attempt" : "attempts"}
      </span>
    </p>
  );
}

function AttemptCard({ attempt, of, run }: { attempt: AttemptView; of: number; run: string }) {
  const verdict = attempt.verdict ? VERDICT[attempt.verdict] : undefined;
  return (
    <section className="panel attempt" aria-label={`Attempt ${attempt.attempt}`}>
      <header>
        <h2>
          Attempt {attempt.attempt} <span className="muted">of {of}</span>
        </h2>
        {verdict ? (
          <Tag tone={verdict.tone} icon={verdict.icon}>
            {verdict.word}
          </Tag>
        ) : (
          <Tag icon="run">{attempt.program ? "Running" : "Writing"}</Tag>
        )}
      </header>
      <dl className="factline">
        {attempt.program && (
          <>
            <div>
              <dt className="lab">Program</dt>
              <dd className="mono">{count(attempt.program.code_lines)} lines</dd>
            </div>
            <div>
              <dt className="lab">Needs</dt>
              <dd className="mono">{attempt.program.dependencies.map(plain).join(", ") || "none"}</dd>
            </div>
          </>
        )}
        {attempt.executed && <ExecutedLine what="Ran" executed={attempt.executed} />}
        {attempt.checked && <ExecutedLine what="Check" executed={attempt.checked} />}
      </dl>
      {attempt.rejected.length > 0 && (
        <ul className="findings">
          {attempt.rejected.map((problem, i) => (
            <li key={i}>
              <Tag tone="warn">rejected</Tag> <CodeText text={problem} />
            </li>
          ))}
        </ul>
      )}
      {attempt.findings && attempt.findings.length > 0 && <Findings findings={attempt.findings} />}
      {attempt.critique && (
        <div className="obj">
          <div className="w">
            <Icon name="warn" />
            Critique
          </div>
          <AgentText text={attempt.critique} />
        </div>
      )}
      {attempt.executed && Object.keys(attempt.executed.files).length > 0 && (
        <p className="docline muted">
          Left{" "}
          {Object.entries(attempt.executed.files).map(([path, file], i) => (
            <span key={path} className="mono">
              {i > 0 && ", "}
              {plain(path)} ({count(file.bytes)} B)
            </span>
          ))}
          . Get them with <code>moothall show {shortId(run)} --output DIR</code>
        </p>
      )}
    </section>
  );
}

function ExecutedLine({ what, executed }: { what: string; executed: ExecutionView }) {
  const bad = !(executed.exit.exit === "exited" && executed.exit.code === 0);
  return (
    <>
      <div>
        <dt className="lab">{what}</dt>
        <dd className={clsx("mono", bad && "badtext")}>{exitWords(executed.exit)}</dd>
      </div>
      <div>
        <dt className="lab">Isolation</dt>
        <dd>
          {isolationWords(executed.class)}, {executed.engine}
        </dd>
      </div>
    </>
  );
}

function exitWords(exit: Exit): string {
  switch (exit.exit) {
    case "exited":
      return `exit ${exit.code}`;
    case "signalled":
      return `signal ${exit.signal}`;
    case "timed_out":
      return "ran out of time";
    case "out_of_memory":
      return "ran out of memory";
    case "sandbox_died":
      return `the sandbox died: ${plain(exit.detail)}`;
  }
}

function Findings({ findings }: { findings: RunFinding[] }) {
  return (
    <ul className="findings">
      {findings.map((finding, i) => (
        <li key={i}>
          <Tag tone={finding.severity === "note" ? undefined : finding.severity === "warn" ? "warn" : "bad"}>
            {finding.severity}
          </Tag>{" "}
          <span className="mono muted">{finding.rule}</span> <CodeText text={finding.message} />
        </li>
      ))}
    </ul>
  );
}
