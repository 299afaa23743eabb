import { useState } from "react";
import { asProblem, get, type Problem } from "../api/client";
import { useMay } from "../api/session";
import type { EngineRow, DoctorResponse as Found } from "../gen/api";
import { plain, timeWithSeconds } from "../model/format";
import { isolationWords } from "../run/isolation";
import { CodeText } from "../ui/code-text";
import { Button, Note, Tag } from "../ui/parts";
import { Row } from "./row";

/** Tests the sandboxes of the server, on demand because it starts virtual machines. */
export function Doctor() {
  const may = useMay("admin");
  const [found, setFound] = useState<Found>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const ask = async () => {
    setBusy(true);
    try {
      setFound(await get<Found>("/api/doctor"));
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  if (may === false)
    return (
      <p className="muted">
        Visible to server administrators. On the server, run <code>moothall doctor</code>.
      </p>
    );
  return (
    <>
      {problem && !busy && (
        <Note tone="bad" alert>
          <b>
            <CodeText text={problem.message} />
          </b>{" "}
          {problem.hint && <CodeText text={problem.hint} />}
        </Note>
      )}
      {found && <Report found={found} />}
      <div className="setrow">
        <span role="status">
          {busy && "Starting a sandbox with every engine. This can take a minute."}
          {!busy && found && `Tested at ${timeWithSeconds(new Date(found.tried_at_ms).toISOString())}`}
          {!busy && !found && !problem && "Not tested yet."}
        </span>
        <span className="setval">
          <Button size="small" disabled={busy || may === undefined} onClick={() => void ask()}>
            {busy ? "Testing" : found || problem ? "Test again" : "Test the sandboxes"}
          </Button>
        </span>
      </div>
    </>
  );
}

function Report({ found }: { found: Found }) {
  const { runs } = found;
  return (
    <>
      <Row name="Programs run on" below={found.chosen ? null : "No engine here is isolated enough to run programs."}>
        {found.chosen && found.class ? (
          <>
            <span>{isolationWords(found.class)}</span>
            <Tag tone="good" icon="check">
              {found.chosen}
            </Tag>
          </>
        ) : (
          <Tag tone="bad">nothing</Tag>
        )}
      </Row>
      {found.engines.map((engine) => (
        <Engine key={engine.engine} engine={engine} />
      ))}
      <Row name="Images">
        <span className="mono">{found.images.map(plain).join(", ")}</span>
      </Row>
      <Row name="Run storage">
        <span className="mono">
          {runs.database
            ? `${plain(runs.database)}, PostgreSQL ${plain(runs.postgresql ?? "")}`
            : plain(runs.file ?? "")}
        </span>
      </Row>
      {found.ways_around.map(({ file, server }) => (
        <Row
          key={`${file} ${server}`}
          name="Drafts can be bypassed"
          below={`${file} gives agents the drafts and also ${server}, which can write files directly.`}
        >
          <Tag tone="warn">{plain(server)}</Tag>
        </Row>
      ))}
    </>
  );
}

function Engine({ engine }: { engine: EngineRow }) {
  const open = engine.limits_not_held ?? [];
  const faults = [...(engine.faults ?? []), ...(open.length > 0 ? [`no limit on ${open.join(", ")}`] : [])];
  const words = [engine.problem, faults.length > 0 && `Failed: ${faults.join(", ")}.`, engine.advice];
  return (
    <Row name={engine.engine} below={words.filter(Boolean).join(" ") || null}>
      {engine.works && engine.class && (
        <span className="mono">
          {isolationWords(engine.class)}, ready in {engine.start_ms} ms
        </span>
      )}
      {engine.works ? (
        <Tag tone="good" icon="check">
          works
        </Tag>
      ) : (
        <Tag tone={engine.problem ? undefined : "bad"}>{engine.problem ? "not available" : "failed"}</Tag>
      )}
    </Row>
  );
}
