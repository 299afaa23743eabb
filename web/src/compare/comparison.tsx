import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { MoveMatch, RunComparison, RunSummary } from "../gen/api";
import { dayAndTime, plain, shortId } from "../model/format";
import { CopyButton } from "../ui/code-text";
import { FormProblem } from "../ui/form-problem";
import { Loading, Note } from "../ui/parts";
import { SlopeChart } from "./slope-chart";

/** Two runs: what was set differently, and how the ranks changed. */
export function Comparison({ a, b, runs }: { a: string; b: string; runs: readonly RunSummary[] }) {
  const path = `/api/runs/${encodeURIComponent(a)}/compare/${encodeURIComponent(b)}`;
  const { data, problem } = useGet<RunComparison>(path);
  if (problem) return <FormProblem problem={problem} />;
  if (!data) return <Loading what="the comparison" />;
  const name = (id: string): string => {
    const run = runs.find((one) => one.run_id === id);
    return run ? dayAndTime(run.created_at) : shortId(id);
  };
  const both = data.moves.filter((one) => one.before && one.after);
  const moved = both.filter((one) => rankChange(one) !== 0);
  return (
    <div className="comparison">
      {!data.same_company && (
        <Note tone="warn">
          <b>These runs are about different companies.</b> Their moves are matched by similarity only.
        </Note>
      )}
      <p className="verdictline">{sentence(data, moved.length)}</p>
      <section className="panel zin" aria-label="Settings that differ">
        <div className="cap">
          <h2>Settings that differ</h2>
          <CopyButton text={`${location.origin}/compare?a=${a}&b=${b}`} label="Copy link" />
        </div>
        {data.settings.length === 0 ? (
          <p className="muted">None: the same models, rounds, committee and brief.</p>
        ) : (
          <table className="settingstable">
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">
                  <Link to={`/runs/${a}/results`}>{name(a)}</Link>
                </th>
                <th scope="col">
                  <Link to={`/runs/${b}/results`}>{name(b)}</Link>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.settings.map((change) => (
                <tr key={change.setting}>
                  <th scope="row">{plain(change.setting)}</th>
                  <td>{plain(change.before) || "none"}</td>
                  <td>{plain(change.after) || "none"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </section>
      <section className="panel zin slopebox" aria-label="Ranks">
        <div className="cap">
          <h2>Ranks</h2>
          <span className="muted">large dots are recommended</span>
        </div>
        <SlopeChart moves={data.moves} names={[name(a), name(b)]} />
      </section>
      <section className="panel zin" aria-label="Rank changes">
        <div className="cap">
          <h2>Rank changes</h2>
        </div>
        <div className="tablebox">
          <table className="ranktable">
            <thead>
              <tr>
                <th scope="col">Move</th>
                <th scope="col" className="right">
                  Rank before
                </th>
                <th scope="col" className="right">
                  Rank after
                </th>
                <th scope="col" className="right">
                  Change
                </th>
                <th scope="col" className="right">
                  Score
                </th>
              </tr>
            </thead>
            <tbody>
              {data.moves.map((one, i) => (
                <tr key={i} data-match={one.before && one.after ? "both" : one.after ? "new" : "gone"}>
                  <th scope="row">
                    <Link to={moveLink(a, b, one)}>{plain((one.after ?? one.before)?.title ?? "")}</Link>
                  </th>
                  <td className="right num">{one.before?.rank ?? "–"}</td>
                  <td className="right num">{one.after?.rank ?? "–"}</td>
                  <td className="right num">{changeWords(one)}</td>
                  <td className="right num">
                    {one.before?.total ?? "–"} → {one.after?.total ?? "–"}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </div>
  );
}

function moveLink(a: string, b: string, one: MoveMatch): string {
  return one.after
    ? `/runs/${b}?layer=3&move=${one.after.move_id}`
    : `/runs/${a}?layer=3&move=${one.before?.move_id ?? ""}`;
}

/** Places won; negative if lost. */
export function rankChange({ before, after }: MoveMatch): number {
  return before?.rank && after?.rank ? before.rank - after.rank : 0;
}

export function changeWords(one: MoveMatch): string {
  if (!one.before) return "new";
  if (!one.after) return "gone";
  const by = rankChange(one);
  return by === 0 ? "same" : by > 0 ? `↑ ${by}` : `↓ ${-by}`;
}

export function sentence({ moves }: Pick<RunComparison, "moves">, moved: number): string {
  const first = (side: "before" | "after") => moves.find((one) => one[side]?.rank === 1)?.[side];
  const [was, is] = [first("before"), first("after")];
  if (!was || !is) return "One of these runs has no ranking yet.";
  const same = moves.some((one) => one.before?.rank === 1 && one.after?.rank === 1);
  const rest = moved === 0 ? "No move changed its rank." : `${moved} ${moved === 1 ? "move" : "moves"} changed rank.`;
  return same
    ? `Both runs rank “${plain(is.title)}” first. ${rest}`
    : `The first place changed from “${plain(was.title)}” to “${plain(is.title)}”. ${rest}`;
}
