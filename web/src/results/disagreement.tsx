import type { ConsultView, MoveView } from "../gen/run";
import { Scatter } from "../viz/scatter";

export function Disagreement({
  consult,
  moves,
  nothing,
}: {
  consult: ConsultView;
  moves: readonly MoveView[];
  /** The score of doing nothing. */
  nothing: number | undefined;
}) {
  const points = moves.flatMap((one) =>
    one.scored && one.scored.score !== null
      ? [
          {
            id: one.move_id,
            score: one.scored.score,
            spread: one.scored.spread,
            top: consult.recommended.includes(one.move_id),
          },
        ]
      : [],
  );
  if (points.length < 3) return null;
  return (
    <section className="panel sct" aria-label="Score against disagreement">
      <div className="cap">
        <h2>Score against disagreement</h2>
      </div>
      <Scatter points={points} outOf={moves[0]?.scored?.out_of ?? 120} nothing={nothing} />
      <p>{reading(points)}</p>
    </section>
  );
}

/** A computed summary of the chart. */
function reading(points: { id: string; score: number; spread: number; top: boolean }[]): string {
  const top = points.filter((point) => point.top);
  const agreed = top.filter((point) => point.spread <= 3).map((point) => point.id);
  const split = [...points].sort((a, b) => b.spread - a.spread)[0];
  const said: string[] = [];
  if (agreed.length > 0) said.push(`${list(agreed)} ${agreed.length === 1 ? "is" : "are"} high and agreed.`);
  else if (top.length > 0) said.push("No recommended move is agreed on within three points.");
  if (split && split.spread >= 5)
    said.push(`${split.id} splits the committee by ${split.spread} points: read that debate before you decide on it.`);
  return said.join(" ");
}

function list(ids: string[]): string {
  return ids.length > 1 ? `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}` : (ids[0] ?? "");
}
