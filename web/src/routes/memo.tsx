import { useEffect, useMemo } from "react";
import { Link, useLocation, useParams } from "react-router";
import { useGet } from "../api/use-get";
import type { ReportDocument } from "../gen/api";
import type { RunView } from "../gen/run";
import { type AnchoredBlock, MemoBlocks } from "../memo/memo-document";
import { plain, shortId } from "../model/format";
import { EvidenceSheets } from "../run/evidence";
import { RunProblem } from "../run/problem";
import { usePageTitle } from "../ui/page-title";
import { ButtonLink, Crumb, Empty, Loading, Note } from "../ui/parts";
import { slugs } from "../ui/slug";
import "../styles/memo.css";

/** The memo of a run: contents, anchors and citations that open their facts. */
export default function Memo() {
  const { runId = "" } = useParams();
  const { hash } = useLocation();
  const run = encodeURIComponent(runId);
  const view = useGet<RunView>(`/api/runs/${run}`);
  const memo = useGet<ReportDocument>(`/api/runs/${run}/memo`);
  usePageTitle(memo.data ? plain(memo.data.title) : "Memo");
  const blocks = useMemo(() => anchored(memo.data), [memo.data]);
  const ready = memo.data !== undefined;
  useEffect(() => {
    if (ready && hash) document.getElementById(decodeURIComponent(hash.slice(1)))?.scrollIntoView();
  }, [ready, hash]);
  if (memo.problem?.code === "no-consultation")
    return (
      <Empty page title="No memo" action={<Link to={`/runs/${run}`}>Back to the run</Link>}>
        Only consultations have a memo.
      </Empty>
    );
  const problem = memo.problem ?? view.problem;
  if (problem) return <RunProblem problem={problem} />;
  if (!memo.data || !view.data) return <Loading what="the memo" />;
  const contents = blocks.flatMap(({ block, anchor }) =>
    block.block === "heading" && block.level <= 1 && anchor ? [{ words: block.words, anchor }] : [],
  );
  return (
    <div className="res memopage fade">
      <div className="vhead">
        <Crumb>
          <Link className="mono" to={`/runs/${run}`}>
            {shortId(runId)}
          </Link>
          <Link to={`/runs/${run}/results`}>Results</Link>
          <span>Memo</span>
        </Crumb>
        <div className="exp">
          <ButtonLink to={`/api/runs/${run}/export.pdf`} download icon="down">
            PDF
          </ButtonLink>
          <ButtonLink to={`/api/runs/${run}/export.md`} download>
            Markdown
          </ButtonLink>
        </div>
      </div>
      <div className="memocols">
        <nav className="contents" aria-label="Contents">
          <details open>
            <summary>Contents</summary>
            <ol>
              {contents.map(({ words, anchor }) => (
                <li key={anchor}>
                  <a href={`#${anchor}`}>{plain(words)}</a>
                </li>
              ))}
            </ol>
          </details>
        </nav>
        <article className="memo">
          <h1>{plain(memo.data.title)}</h1>
          <p className="subtitle">{plain(memo.data.subtitle)}</p>
          {memo.data.watermark && <Note tone="warn">{plain(memo.data.watermark)}</Note>}
          <MemoBlocks run={runId} blocks={blocks} />
        </article>
      </div>
      <EvidenceSheets view={view.data} />
    </div>
  );
}

function anchored(memo: ReportDocument | undefined): AnchoredBlock[] {
  if (!memo) return [];
  const heads = memo.blocks.filter((block) => block.block === "heading");
  const anchors = slugs(heads.map((block) => plain(block.words)));
  let at = 0;
  return memo.blocks.map((block) => ({ block, anchor: block.block === "heading" ? anchors[at++] : undefined }));
}
