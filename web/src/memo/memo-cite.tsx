import { useId, useState } from "react";
import { Link, useSearchParams } from "react-router";
import { useGet } from "../api/use-get";
import type { CitedFact } from "../gen/api";
import { plain } from "../model/format";
import { citeName } from "../ui/cite";
import { ProblemText } from "../ui/code-text";

const CARD_WIDTH = 380;
const MARGIN = 12;

/** A citation in the memo. Hover and focus show the fact and its filing; a click opens it. */
export function MemoCite({ run, id }: { run: string; id: string }) {
  const [params] = useSearchParams();
  const [place, setPlace] = useState<{ top: number; left: number }>();
  const cardId = useId();
  const to = new URLSearchParams(params);
  to.set("fact", id);
  const show = (event: { currentTarget: HTMLElement }) => {
    const { bottom, left } = event.currentTarget.getBoundingClientRect();
    // Inside the window, also on a phone.
    const most = innerWidth - Math.min(CARD_WIDTH, innerWidth - 2 * MARGIN) - MARGIN;
    setPlace({ top: bottom + 4, left: Math.max(MARGIN, Math.min(left, most)) });
  };
  const hide = () => setPlace(undefined);
  return (
    <>
      <Link
        className="cite"
        to={`?${to}`}
        preventScrollReset
        aria-describedby={place ? cardId : undefined}
        onMouseEnter={show}
        onMouseLeave={hide}
        onFocus={show}
        onBlur={hide}
        onKeyDown={(event) => event.key === "Escape" && hide()}
      >
        {plain(citeName(id))}
      </Link>
      {place && (
        <span className="hovercard" role="tooltip" id={cardId} style={place}>
          <FactPreview run={run} id={id} />
        </span>
      )}
    </>
  );
}

function FactPreview({ run, id }: { run: string; id: string }) {
  const document = /^F[12]\b/.exec(id)?.[0];
  const path = `/api/runs/${run}/facts/${encodeURIComponent(id)}`;
  const { data, problem } = useGet<CitedFact>(document ? null : path);
  if (document)
    return (
      <span>
        {document === "F1" ? "F1, what the figures mean" : "F2, where it is heading"}: a document of this run.
      </span>
    );
  if (problem)
    return problem.code === "not-found" ? (
      <span>This fact does not exist in the evidence.</span>
    ) : (
      <span>
        <ProblemText problem={problem} />
      </span>
    );
  if (!data) return <span className="muted">Loading the fact</span>;
  return (
    <>
      <span className="says">{plain(data.says)}</span>
      {data.filed && <span className="muted">Filed in {plain(data.filed)}</span>}
      {data.formula && <span className="muted">Computed as {plain(data.formula)}</span>}
    </>
  );
}
