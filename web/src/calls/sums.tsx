// Sums of the calls by role, move and model. Each sum filters the list.
import type { CallSum, CallSums } from "../gen/api";
import { count, plain } from "../model/format";
import { costOfSum, short } from "./call-format";
import type { CallPlace, FilterName } from "./filters";

const NO_MOVE = "no move";

export function Sums({ sums, place }: { sums: CallSums; place: CallPlace }) {
  const divisions: [string, FilterName, CallSum[]][] = [
    ["By role", "role", sums.roles],
    ["By move", "move", sums.moves],
    ["By model", "model", sums.models],
  ];
  return (
    <div className="callsums">
      {divisions.map(([title, filter, parts]) => (
        <Division key={title} title={title} filter={filter} parts={parts} total={sums.total} place={place} />
      ))}
    </div>
  );
}

function Division({
  title,
  filter,
  parts,
  total,
  place,
}: {
  title: string;
  filter: FilterName;
  parts: CallSum[];
  total: CallSum;
  place: CallPlace;
}) {
  // Without prices the tokens show where the work is.
  const weight = (sum: CallSum) =>
    total.cost_micro_usd > 0
      ? sum.cost_micro_usd / total.cost_micro_usd
      : (sum.prompt_tokens + sum.output_tokens) / Math.max(1, total.prompt_tokens + total.output_tokens);
  return (
    <div className="callsum">
      <table>
        <caption>{title}</caption>
        <thead className="sr">
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Calls</th>
            <th scope="col">Tokens</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((sum) => (
            <tr key={sum.name}>
              <th scope="row">
                <i style={{ width: `${weight(sum) * 100}%` }} aria-hidden="true" />
                {sum.name === NO_MOVE ? (
                  <span>{sum.name}</span>
                ) : (
                  <button
                    type="button"
                    title={plain(sum.name)}
                    aria-pressed={place.filters[filter] === sum.name}
                    onClick={() => place.change({ [filter]: place.filters[filter] === sum.name ? null : sum.name })}
                  >
                    {plain(sum.name)}
                  </button>
                )}
              </th>
              <td>{count(sum.calls)}</td>
              <td title={`${count(sum.prompt_tokens)} in, ${count(sum.output_tokens)} out`}>
                {short(sum.prompt_tokens + sum.output_tokens)}
              </td>
              <td>{costOfSum(sum)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
