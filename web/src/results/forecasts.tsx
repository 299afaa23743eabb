import { useGet } from "../api/use-get";
import type { ForecastRow, RunForecasts } from "../gen/api";
import type { RunView } from "../gen/run";
import { plain } from "../model/format";
import { isOver } from "../model/reduce";
import { Tag } from "../ui/parts";

/** What the panel expects of later filings, and what they showed. Nothing for runs without forecasts. */
export function Forecasts({ view }: { view: RunView }) {
  const { data } = useGet<RunForecasts>(isOver(view.status) ? `/api/runs/${view.about.run_id}/forecasts` : null);
  if (!data || data.questions.length === 0) return null;
  const answered = data.questions.filter((one) => one.happened !== null).length;
  return (
    <section className="panel costs forecasts" aria-label="Forecasts">
      <div className="cap">
        <h2>Forecasts</h2>
        <span className="muted">
          {answered} of {data.questions.length} answered by later filings
        </span>
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">Question</th>
            <th scope="col" className="right">
              Chance
            </th>
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {data.questions.map((one) => (
            <tr key={one.id}>
              <th scope="row">{plain(one.text)}</th>
              <td className="right">{chanceText(one)}</td>
              <td>
                <Answer one={one} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {answered < data.questions.length && (
        <p className="muted">
          <code>moothall outcome record {view.about.run_id.slice(0, 13)}</code> reads new filings.
        </p>
      )}
    </section>
  );
}

function Answer({ one }: { one: ForecastRow }) {
  if (one.happened === null) return <span className="muted">Open until {one.day} or later</span>;
  return (
    <>
      <Tag>{one.happened ? "Yes" : "No"}</Tag> <span className="muted">{plain(one.basis ?? "")}</span>
    </>
  );
}

export function chanceText({ chance }: Pick<ForecastRow, "chance">): string {
  return chance === null ? "–" : `${Math.round(chance / 10)} %`;
}
