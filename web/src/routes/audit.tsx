import { useEffect, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { asProblem, get, type Problem } from "../api/client";
import { useGet } from "../api/use-get";
import { useDraftNews } from "../drafts/use-news";
import type { AuditPage, AuditRow } from "../gen/api";
import { count, dayAndTime, plain, timeWithSeconds } from "../model/format";
import { ProblemText } from "../ui/code-text";
import { Button, Empty, Loading, Note } from "../ui/parts";

/** The audit log of drafts: all records, and whether its hash chain is valid. */
export default function Audit() {
  const [params, setParams] = useSearchParams();
  const workspace = params.get("workspace");
  const query = workspace === null ? "" : `workspace=${encodeURIComponent(workspace)}`;
  const news = useDraftNews();
  const { data, problem } = useGet<AuditPage>(`/api/audit?${query}`, news);
  const [older, setOlder] = useState<{ of: string; rows: AuditRow[]; next: number | null }>();
  const [failed, setFailed] = useState<Problem>();
  useEffect(() => {
    document.title = "Audit · Moothall";
  }, []);
  const more = older?.of === query ? older : undefined;
  // New records are added to the first page; older pages stay loaded.
  const rows = [...(data?.page ?? [])];
  for (const row of more?.rows ?? []) if (row.seq < (rows.at(-1)?.seq ?? Infinity)) rows.push(row);
  const next = more ? more.next : (data?.next ?? null);
  const showMore = async () => {
    try {
      const page = await get<AuditPage>(`/api/audit?${query}&before=${next}`);
      const before = more?.rows ?? data?.page ?? [];
      setOlder({ of: query, rows: [...before, ...page.page], next: page.next });
      setFailed(undefined);
    } catch (error) {
      setFailed(asProblem(error));
    }
  };
  const wrong = problem ?? failed;
  return (
    <div className="res draftpage fade">
      <nav className="crumb" aria-label="Where you are">
        <Link to="/drafts">Drafts</Link>
        <span aria-hidden="true">/</span>
        <span>Audit</span>
      </nav>
      <h1 className="pagetitle">Audit</h1>
      <p className="sub">Every event of every draft. Each record includes the hash of the previous one.</p>
      {wrong && (
        <Note tone="bad" alert>
          <ProblemText problem={wrong} />
        </Note>
      )}
      {!data && !problem && <Loading what="the journal" />}
      {data && data.workspaces.length > 1 && (
        <label className="auditpick">
          <span className="lab">Workspace</span>
          <select value={data.workspace ?? ""} onChange={(event) => setParams({ workspace: event.target.value })}>
            {data.workspaces.map((one) => (
              <option key={one.id} value={one.id}>
                {plain(one.name)}
              </option>
            ))}
          </select>
        </label>
      )}
      {data && data.workspace === null && (
        <div className="runs">
          <Empty title="No workspace is configured">
            Start the server with <code>moothall serve --workspace DIR</code>.
          </Empty>
        </div>
      )}
      {data && data.workspace !== null && <Verdict page={data} />}
      {data?.torn.map((torn) => (
        <Note key={torn.file} tone="warn">
          {torn.file} holds {count(torn.bytes)} bytes of an unfinished record that a crash left.
        </Note>
      ))}
      {rows.length > 0 && (
        <ol className="panel auditlist" aria-label="Records, the newest first">
          {rows.map((row) => (
            <Record key={row.seq} row={row} />
          ))}
        </ol>
      )}
      {data?.workspace && rows.length === 0 && (
        <div className="runs">
          <Empty title="No drafts yet" />
        </div>
      )}
      {next !== null && (
        <p className="showmore">
          <Button size="small" look="ghost" onClick={showMore}>
            Show older records
          </Button>
        </p>
      )}
    </div>
  );
}

function Verdict({ page }: { page: AuditPage }) {
  if (!page.holds)
    return (
      <Note tone="bad" alert>
        <b>The audit log is not valid.</b> {plain(page.why ?? "")}. {count(page.records)} records were read.
      </Note>
    );
  return (
    <Note tone="good" icon="check">
      <b>
        Audit log verified: {count(page.records)} {page.records === 1 ? "record" : "records"}, {count(page.checkpoints)}{" "}
        signed {page.checkpoints === 1 ? "checkpoint" : "checkpoints"}.
      </b>
      {page.head !== null && (
        <>
          {" "}
          Save this checksum elsewhere:{" "}
          <span className="mono anchor">
            {page.records}:{page.head}
          </span>
        </>
      )}
    </Note>
  );
}

function Record({ row }: { row: AuditRow }) {
  return (
    <li>
      <span className="mono muted">{row.seq}</span>
      <time className="muted" dateTime={row.at} title={dayAndTime(row.at)}>
        {timeWithSeconds(row.at)}
      </time>
      <b>{row.kind}</b>
      <span className="auditwords">
        {row.path !== null && <span className="mono">{plain(row.path)} </span>}
        {row.words.map(plain).join(", ")}{" "}
        {row.drafts.map((draft) => (
          <Link key={draft} className="mono auditdraft" to={`/drafts/${draft}`}>
            {draft.slice(0, 10)}
          </Link>
        ))}
      </span>
      <span className="muted auditwho">{plain(row.who)}</span>
    </li>
  );
}
