import { Link } from "react-router";
import { callsPath } from "../calls/filters";
import type { RunView } from "../gen/run";
import { clock, count, usd } from "../model/format";
import { isOver } from "../model/reduce";
import { useNow } from "../ui/use-now";
import { useMedia } from "../ui/use-width";
import { SpendMeter } from "../viz/spend-meter";

/** Cost, calls, time and retries of a run. */
export function Meter({ view }: { view: RunView }) {
  const over = isOver(view.status);
  const goesOn = !over && view.about.driven && view.status.state === "running";
  const now = useNow(goesOn ? 1000 : null);
  const { usage, about } = view;
  const expected = view.consult?.expected_calls ?? 0;
  const begun = Date.parse(view.started_at ?? about.created_at);
  const until = goesOn ? now : Date.parse(view.ended_at ?? view.updated_at ?? about.created_at);
  const elapsed = Math.max(0, until - begun);
  const spent = usage.cost_micro_usd;
  const heading = !over && usage.calls >= 10 && expected > usage.calls ? (spent / usage.calls) * expected : spent;
  const cap = about.cap_micro_usd;
  const short = view.consult?.moves.filter((one) => (one.scored?.degraded.length ?? 0) > 0).length ?? 0;
  const narrow = useMedia("(max-width: 700px)");
  const trouble = usage.extra_calls + usage.failed_calls;
  return (
    <details className="meterbox" open={!narrow}>
      <summary>
        {usd(spent)} · {count(usage.calls)} calls · {clock(elapsed)}
      </summary>
      <div className="meter">
        <div className="spend">
          <div>
            <div className="lab">{cap === null ? "Spent" : `Spent of ${usd(cap)} limit`}</div>
            <Link className="v" to={callsPath(about.run_id)}>
              {usd(spent)}
              <small>{spentWords(view, heading)}</small>
            </Link>
          </div>
          {cap !== null && cap > 0 && <SpendMeter spent={spent} projected={heading} cap={cap} />}
        </div>
        <div>
          <div className="lab">Model calls</div>
          <Link className="v" to={callsPath(about.run_id)}>
            {count(usage.calls)}
            {expected > 0 && !over && <small>of about {count(expected)}</small>}
          </Link>
        </div>
        <div>
          <div className="lab">{over ? "Took" : "Elapsed"}</div>
          <div className="v">{clock(elapsed)}</div>
        </div>
        <div>
          <div className="lab">{over ? "Tokens" : "Time left"}</div>
          {over ? (
            <Link className="v" to={callsPath(about.run_id, { sort: "tokens" })}>
              {tokens(usage.prompt_tokens + usage.output_tokens)}
            </Link>
          ) : (
            <div className="v">{left(view, elapsed, goesOn)}</div>
          )}
        </div>
        <div>
          <div className="lab">Retries</div>
          <Link className="v" to={callsPath(about.run_id, { retries: "true" })}>
            {count(trouble)}
            {short > 0 && <small>{short === 1 ? "1 move incomplete" : `${short} moves incomplete`}</small>}
          </Link>
        </div>
      </div>
    </details>
  );
}

function spentWords(view: RunView, heading: number): string {
  if (view.usage.unpriced_calls > 0) return `${count(view.usage.unpriced_calls)} calls without a price`;
  if (view.about.model === "demo") return "the demo is free";
  if (heading > view.usage.cost_micro_usd) return `on track for ${usd(heading)}`;
  return "";
}

/** A range: the estimate is rough. */
function left(view: RunView, elapsed: number, goesOn: boolean): string {
  const expected = view.consult?.expected_calls ?? 0;
  if (!goesOn) return "–";
  if (view.usage.calls < 12 || expected <= view.usage.calls) return "Estimating…";
  const ms = (elapsed / view.usage.calls) * (expected - view.usage.calls);
  if (ms < 90_000) return `${Math.max(1, Math.round(ms / 10_000)) * 10} s`;
  const [low, high] = [Math.floor((ms * 0.9) / 60_000), Math.ceil((ms * 1.15) / 60_000)];
  return low === high ? `${low} min` : `${Math.max(1, low)}–${high} min`;
}

function tokens(all: number): string {
  if (all >= 1e6) return `${(all / 1e6).toFixed(1)} M`;
  return all >= 1e4 ? `${Math.round(all / 1e3)} k` : count(all);
}
