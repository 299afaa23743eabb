import { Link } from "react-router";
import { useGet } from "../api/use-get";
import type { MoveMatch, MovePlace, RunComparison } from "../gen/api";
import { capital, dayAndTime, plain } from "../model/format";
import { byNumber } from "../model/select";
import { listed } from "../results/verdict";
import { CopyButton } from "../ui/code-text";
import { FormProblem } from "../ui/form-problem";
import { Loading, Note } from "../ui/parts";
import { SlopeChart } from "./slope-chart";

/** Two runs: what was set differently, and how the ranks or tiers changed. */
export function Comparison({ a, b }: { a: string; b: string }) {
  const path = `/api/runs/${encodeURIComponent(a)}/compare/${encodeURIComponent(b)}`;
  const { data, problem } = useGet<RunComparison>(path);
  if (problem) return <FormProblem problem={problem} />;
  if (!data) return <Loading what="the comparison" />;
  const runs = [
    { id: a, ...data.before },
    { id: b, ...data.after },
  ];
  const names = [dayAndTime(data.before.created_at), dayAndTime(data.after.created_at)] as const;
  // With fewer than six moves, a panel makes no tiers.
  const hasPanel = hasTiers(data.moves) || runs.some(({ panel }) => panel);
  return (
    <div className="comparison">
      {!data.same_company && (
        <Note tone="warn">
          <b>These runs are about different companies.</b> Their moves are matched by similarity only.
        </Note>
      )}
      {runs.map(
        ({ id, created_at, panel }) =>
          panel?.warning && (
            <Note key={id} tone={panel.failed ? "bad" : "warn"}>
              <b>{dayAndTime(created_at)}:</b> {panel.failed ? "✗" : "!"} {plain(panel.warning)}
            </Note>
          ),
      )}
      <p className="verdictline">{hasPanel ? tierSentence(data) : sentence(data)}</p>
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
                  <Link to={`/runs/${a}/results`}>{names[0]}</Link>
                </th>
                <th scope="col">
                  <Link to={`/runs/${b}/results`}>{names[1]}</Link>
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
      {hasPanel ? (
        <TierChanges a={a} b={b} moves={data.moves} />
      ) : (
        <RankChanges a={a} b={b} moves={data.moves} names={names} />
      )}
    </div>
  );
}

interface Changes {
  a: string;
  b: string;
  moves: readonly MoveMatch[];
}

function RankChanges({ a, b, moves, names }: Changes & { names: readonly [string, string] }) {
  return (
    <>
      <section className="panel zin slopebox" aria-label="Ranks">
        <div className="cap">
          <h2>Ranks</h2>
          <span className="muted">large dots are recommended</span>
        </div>
        <SlopeChart moves={moves} names={names} />
      </section>
      <ChangeTable
        title="Rank changes"
        heads={["Rank before", "Rank after", "Change", "Score"]}
        a={a}
        b={b}
        moves={moves}
        cells={(one) => [one.before?.rank ?? "–", one.after?.rank ?? "–", changeWords(one), totals(one)]}
      />
    </>
  );
}

/** Ranks mean nothing when a panel judged, so there is no chart of them. */
function TierChanges({ a, b, moves }: Changes) {
  const isComparable = hasTiers(moves, ["before"]) && hasTiers(moves, ["after"]);
  return (
    <ChangeTable
      title="Tier changes"
      heads={["Tier before", "Tier after", "Change", "Defence score"]}
      a={a}
      b={b}
      moves={moves.toSorted(byTier)}
      cells={(one) => [tierName(one.before), tierName(one.after), isComparable ? tierWords(one) : "–", totals(one)]}
    />
  );
}

function ChangeTable({
  title,
  heads,
  a,
  b,
  moves,
  cells,
}: Changes & { title: string; heads: readonly string[]; cells: (one: MoveMatch) => readonly (string | number)[] }) {
  return (
    <section className="panel zin" aria-label={title}>
      <div className="cap">
        <h2>{title}</h2>
      </div>
      <div className="tablebox">
        <table className="ranktable">
          <thead>
            <tr>
              <th scope="col">Move</th>
              {heads.map((head) => (
                <th key={head} scope="col" className="right">
                  {head}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {moves.map((one, i) => (
              <tr key={i} data-match={one.before && one.after ? "both" : one.after ? "new" : "gone"}>
                <th scope="row">
                  <Link to={moveLink(a, b, one)}>{plain((one.after ?? one.before)?.title ?? "")}</Link>
                </th>
                {cells(one).map((cell, at) => (
                  <td key={heads[at]} className="right num">
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function totals({ before, after }: MoveMatch): string {
  return `${before?.total ?? "–"} → ${after?.total ?? "–"}`;
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

export function sentence({ moves }: Pick<RunComparison, "moves">): string {
  const first = (side: "before" | "after") => moves.find((one) => one[side]?.rank === 1)?.[side];
  const [was, is] = [first("before"), first("after")];
  if (!was || !is) return "One of these runs has no ranking yet.";
  const same = moves.some((one) => one.before?.rank === 1 && one.after?.rank === 1);
  const moved = moves.filter((one) => rankChange(one) !== 0).length;
  const rest = moved === 0 ? "No move changed its rank." : `${moved} ${moved === 1 ? "move" : "moves"} changed rank.`;
  return same
    ? `Both runs rank “${plain(is.title)}” first. ${rest}`
    : `The first place changed from “${plain(was.title)}” to “${plain(is.title)}”. ${rest}`;
}

function hasTiers(moves: readonly MoveMatch[], sides: readonly ("before" | "after")[] = ["before", "after"]): boolean {
  return moves.some((one) => sides.some((side) => one[side]?.tier));
}

/** Which moves are in the lead of both runs, and which only in one. */
export function tierSentence({ moves }: Pick<RunComparison, "moves">): string {
  if (!hasTiers(moves)) return "Neither of these runs has tiers.";
  for (const side of ["before", "after"] as const)
    if (!hasTiers(moves, [side])) return `The run ${side} has no tiers, so the leads cannot be compared.`;
  const lead = (of: (was: boolean, is: boolean) => boolean) => {
    const found = moves.filter((one) => of(one.before?.tier === "lead", one.after?.tier === "lead"));
    return listed(found.map(idsOf).sort(byNumber));
  };
  const [both, left, joined] = [
    lead((was, is) => was && is),
    lead((was, is) => was && !is),
    lead((was, is) => !was && is),
  ];
  const moved = moves.filter((one) => one.before && one.after && one.before.tier !== one.after.tier).length;
  return [
    both === "" ? "The runs have no move of their leads in common." : `Both runs have ${both} in the lead.`,
    left !== "" && `Only before: ${left}.`,
    joined !== "" && `Only after: ${joined}.`,
    moved === 0 ? "No move changed its tier." : `${moved} ${moved === 1 ? "move" : "moves"} changed tier.`,
  ]
    .filter(Boolean)
    .join(" ");
}

/** `m2`, or `m2 → m4` if the number changed. */
function idsOf({ before, after }: MoveMatch): string {
  return [...new Set([before, after].flatMap((one) => (one ? [one.move_id] : [])))].join(" → ");
}

const TIERS = ["lead", "middle", "behind"];

function tierName(place: MovePlace | null): string {
  return place?.tier ? capital(plain(place.tier)) : "–";
}

/** The place of a tier; moves without one come last. */
function tierPlace(place: MovePlace | null): number {
  const at = TIERS.indexOf(place?.tier ?? "");
  return at < 0 ? TIERS.length : at;
}

/** By tier; the order within a tier means nothing, so it is by number. */
function byTier(one: MoveMatch, other: MoveMatch): number {
  return (
    tierPlace(one.after) - tierPlace(other.after) ||
    tierPlace(one.before) - tierPlace(other.before) ||
    byNumber(idsOf(one), idsOf(other))
  );
}

export function tierWords(one: MoveMatch): string {
  if (!one.before) return "new";
  if (!one.after) return "gone";
  return one.before.tier === one.after.tier ? "same" : "changed";
}
