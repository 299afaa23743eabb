import { useEffect, useRef } from "react";
import { Link, useSearchParams } from "react-router";
import { useGet } from "../api/use-get";
import { useDraftNews } from "../drafts/use-news";
import { actionTone, rules, stateTone, stateWords, submissions } from "../drafts/words";
import type { DraftList, DraftRow } from "../gen/api";
import { ago, plain } from "../model/format";
import { CodeText } from "../ui/code-text";
import { useKeys } from "../ui/keys";
import { Button, ButtonLink, Empty, Loading, Note, Segmented, Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";

const SHOWN = [
  { value: "waiting", name: "Waiting" },
  { value: "all", name: "All" },
] as const;

/** Drafts of agents that need review. */
export default function Drafts() {
  const [params, setParams] = useSearchParams();
  const shown = params.get("show") === "all" ? "all" : "waiting";
  const news = useDraftNews();
  const now = useNow(10_000);
  const { data, problem, reload } = useGet<DraftList>(
    shown === "all" ? "/api/drafts" : "/api/drafts?state=escalated",
    news,
  );
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    document.title = data?.waiting ? `(${data.waiting}) Drafts · Moothall` : "Drafts · Moothall";
  }, [data?.waiting]);
  const step = (by: 1 | -1) => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>("a.run") ?? [])];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)]?.focus();
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  const names = new Map(data?.workspaces.map((one) => [one.id, one.name]));
  const found = data && submissions(data.drafts);
  return (
    <div className="res narrowpage fade">
      <h1 className="pagetitle">Drafts</h1>
      <p className="sub">Agents propose changes. Safe ones are applied automatically; the rest wait here for review.</p>
      <div className="draftbar">
        <Segmented
          label="Drafts to show"
          options={SHOWN}
          value={shown}
          onChange={(next) => setParams(next === "all" ? { show: "all" } : {}, { replace: true })}
        />
        {found && found.length > 0 && (
          <span className="muted only-w">
            <span className="kbd">j</span> <span className="kbd">k</span> choose, <span className="kbd">Enter</span>{" "}
            opens
          </span>
        )}
        <span className="push">
          <ButtonLink to="/audit" look="ghost" size="small" icon="shield">
            Audit
          </ButtonLink>
        </span>
      </div>
      {problem && (
        <Note tone="bad" alert>
          <b>
            <CodeText text={problem.message} />
          </b>{" "}
          {problem.hint && <CodeText text={problem.hint} />}{" "}
          <Button size="small" onClick={reload}>
            Try again
          </Button>
        </Note>
      )}
      {!data && !problem && <Loading what="drafts" />}
      {data && data.workspaces.length === 0 && (
        <div className="runs">
          <Empty title="No workspace is configured">
            Start the server with <code>moothall serve --workspace DIR</code> to review drafts of the files in that
            directory, and connect an agent with <code>moothall connect</code>.
          </Empty>
        </div>
      )}
      {data && data.workspaces.length > 0 && found?.length === 0 && (
        <div className="runs">
          <Empty
            title={shown === "all" ? "No drafts yet" : "Nothing to review"}
            action={
              shown === "waiting" && (
                <Button size="small" onClick={() => setParams({ show: "all" }, { replace: true })}>
                  Show all drafts
                </Button>
              )
            }
          >
            {shown === "all" ? (
              <>
                Drafts appear here when an agent requests one. <code>moothall connect</code> connects an agent.
              </>
            ) : (
              "New drafts appear here automatically."
            )}
          </Empty>
        </div>
      )}
      {found && found.length > 0 && (
        <div className="runs" ref={list}>
          {found.map(({ first, files }) => (
            <Row
              key={first.draft_id}
              first={first}
              files={files}
              where={names.size > 1 ? names.get(first.workspace) : undefined}
              now={now}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function Row({
  first,
  files,
  where,
  now,
}: {
  first: DraftRow;
  files: DraftRow[];
  where: string | undefined;
  now: number;
}) {
  const more = Math.max(files.length, first.together.length) - 1;
  const summary = plain(first.summary || first.task_id);
  return (
    <Link className="run draft" to={`/drafts/${first.draft_id}`}>
      <div className="out">
        <b className="mono" title={[where && plain(where), plain(first.path)].filter(Boolean).join("/")}>
          {where && <span className="muted">{plain(where)}/</span>}
          {plain(first.path)}
          {more > 0 && <span className="muted"> and {more} more</span>}
        </b>
        <span title={summary}>{summary}</span>
      </div>
      <div className="chips">
        {rules(first)
          .slice(0, 3)
          .map(({ rule, action }) => (
            <Tag key={rule} tone={actionTone(action)}>
              {rule}
            </Tag>
          ))}
      </div>
      <div className="muted r when">{ago(first.touched_at, now)}</div>
      <div className="r state">
        <Tag tone={stateTone(first.state)}>{stateWords(first.state)}</Tag>
      </div>
    </Link>
  );
}
