import { Link } from "react-router";
import { callsPath, type FilterName } from "../calls/filters";
import type { CallCosts, CallPurpose, RunView } from "../gen/run";
import { count, plain, usd } from "../model/format";
import { ROLE } from "../model/roles";

// The same names as in `crates/moothall-core/src/view/costs.rs`.
const STAGE: Partial<Record<CallPurpose, string>> = {
  "synthesize-financials": "gather",
  "synthesize-news": "gather",
  "infer-financial": "infer",
  "infer-trend": "infer",
  analyst: "analyze",
  critic: "debate",
  "decision-maker": "debate",
  score: "score",
  "score-nothing": "score without debate",
  "score-baseline": "score without debate",
  "panel-score": "panel",
};

export interface CostPart {
  name: string;
  calls: number;
  micro: number;
  unpriced: number;
}

/** Adds up the rows that have the same name. */
export function partsBy(costs: readonly CallCosts[], name: (row: CallCosts) => string): CostPart[] {
  const parts = new Map<string, CostPart>();
  for (const row of costs) {
    const part = parts.get(name(row)) ?? { name: name(row), calls: 0, micro: 0, unpriced: 0 };
    parts.set(part.name, {
      ...part,
      calls: part.calls + row.calls,
      micro: part.micro + row.cost_micro_usd,
      unpriced: part.unpriced + row.unpriced_calls,
    });
  }
  return [...parts.values()];
}

/** What the run cost, by role, stage and model. */
export function Costs({ view }: { view: RunView }) {
  if (view.costs.length === 0) return null;
  const divisions = [
    ["By role", "role", partsBy(view.costs, (row) => ROLE[row.purpose] ?? "other")],
    ["By stage", "stage", partsBy(view.costs, (row) => STAGE[row.purpose] ?? "other")],
    ["By model", "model", partsBy(view.costs, (row) => plain(row.model))],
  ] as const satisfies readonly (readonly [string, FilterName, CostPart[]])[];
  return (
    <section className="panel costs" aria-label="Cost">
      <div className="cap">
        <h2>Cost</h2>
        <span className="muted">{usd(view.usage.cost_micro_usd)} for all answers</span>
      </div>
      <div className="costcols">
        {divisions.map(([title, filter, parts]) => (
          <table key={title}>
            <caption>{title}</caption>
            <tbody>
              {parts.map((part) => (
                <tr key={part.name}>
                  <th scope="row">
                    <Link to={callsPath(view.about.run_id, { [filter]: part.name })}>{part.name}</Link>
                  </th>
                  <td className="right muted">{count(part.calls)} calls</td>
                  <td className="right">{part.unpriced > 0 && part.micro === 0 ? "price unknown" : usd(part.micro)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      </div>
    </section>
  );
}
