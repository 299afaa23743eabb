import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { asProblem, type Problem, post } from "../api/client";
import type { Facts } from "../api/facts";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type {
  CommitteeList,
  ConsultSource,
  ServerSettings,
  StartConsultRequest,
  StartRunRequest,
  StartRunResponse,
  TickerList,
} from "../gen/api";
import { count, isoDay, plain } from "../model/format";
import { CodeText } from "../ui/code-text";
import { FieldProblem } from "../ui/field";
import { FormProblem } from "../ui/form-problem";
import { Icon } from "../ui/icon";
import { Button, Segmented, Tag } from "../ui/parts";
import { addressNow, useAddress } from "../ui/use-address";
import { Blocked } from "./blocked";
import { CompanyField } from "./company-field";
import { type ConsultOptions, ConsultOptionsPanel, NO_OPTIONS, optionsBody, optionsFiles } from "./consult-options";
import { cheaperVerdicts, type Estimate } from "./estimate";
import { type FormField, fieldOf, problemText } from "./field-problem";
import { consultBlocker } from "./readiness";
import { useDelayed } from "./use-delayed";

/** The number of rounds in the address, if somebody chose one. */
const roundsIn = (address: URLSearchParams) => Number(address.get("rounds")) || null;

const SOURCES = ["filings", "files", "synthetic"] as const satisfies readonly ConsultSource[];

const ROUNDS = [3, 4, 10].map((value) => ({ value, name: String(value) }));

/** Letters of a ticker; a longer text can only be a name. */
const LONGEST_TICKER = 5;

/** Fields outside the options panel. */
const ALWAYS_SHOWN: readonly FormField[] = ["company", "budget", "rounds"];

/** The form that starts a consultation: company, rounds, spend limit. */
export function TickerForm() {
  const navigate = useNavigate();
  const [params, changeAddress] = useAddress();
  const field = useRef<HTMLInputElement>(null);
  const hintId = useId();
  const [ticker, setTicker] = useState(() => (params.get("ticker") ?? "HLXI").toUpperCase());
  const chosenRounds = roundsIn(params);
  const rounds = chosenRounds ?? 10;
  const source = SOURCES.find((one) => one === params.get("source")) ?? "filings";
  const isNamed = source === "files";
  const [name, setName] = useState("");
  const [options, setOptions] = useState(NO_OPTIONS);
  const [open, setOpen] = useState(isNamed);
  // The address follows the box, which must not wait for it.
  const [waits, setWaits] = useState(() => params.get("wait") === "moves");
  const [committee, setCommittee] = useState("board");
  const [budget, setBudget] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();

  const asked = useDelayed(ticker.trim().toUpperCase(), 250);
  const settings = useGet<ServerSettings>("/api/settings").data;
  const committees = useGet<CommitteeList>("/api/committees").data?.committees;
  const found = useGet<TickerList>(asked && !isNamed ? `/api/tickers?q=${encodeURIComponent(asked)}` : null);
  const known = found.data?.tickers.find((one) => one.ticker === asked);
  const canLookUp = settings === undefined || settings.contact || settings.offline;
  // Without lookups only the sample company is searched: what may be the ticker of a real company does not mean it.
  const [only, ...others] = found.data?.tickers ?? [];
  const isName = canLookUp || asked.length > LONGEST_TICKER;
  const byName = isName && others.length === 0 ? only : undefined;
  // While a name is being searched for, there is nothing to estimate.
  const company = useDelayed(isNamed ? name.trim() : known || found.problem ? asked : "", 250);
  const body = startBody(company, chosenRounds, source, committee, budget, waits, options);
  const estimate = useEstimate(useDelayed(company === "" ? null : JSON.stringify(body), 250));
  const blocker = consultBlocker(settings, useMay("run"), {
    model: options.model.trim(),
    source,
    fictional: (known ?? byName)?.fictional ?? (found.data && !asked.startsWith("EVAL-") ? false : undefined),
  });
  const problemOf = (field: FormField) => problemText(field, problem, estimate?.problem);

  const change = (name: string, value: string, usual: string) =>
    changeAddress({ [name]: value === usual ? null : value });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the address follows the field, not the other way round
  useEffect(() => {
    if (asked) change("ticker", asked, "HLXI");
    setProblem(undefined);
  }, [asked]);

  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || blocker) return;
    const typed = ticker.trim().toUpperCase();
    // A name that matches one company is replaced by its ticker.
    const subject = isNamed ? name.trim() : !known && byName && typed === asked ? byName.ticker : typed;
    if (subject === "") {
      field.current?.focus();
      return;
    }
    setBusy(true);
    setProblem(undefined);
    try {
      const files = await optionsFiles(options, source);
      // The page can be drawn later than the button is pressed.
      const fresh = startBody(subject, roundsIn(addressNow()), source, committee, budget, waits, options);
      const request: StartRunRequest = { workflow: "consult", ...fresh, ...files };
      // A form sent twice, by a double click or a lost response, starts one run.
      const { run_id } = await post<StartRunResponse>("/api/runs", request, { "idempotency-key": crypto.randomUUID() });
      navigate(`/runs/${run_id}`);
    } catch (error) {
      const refused = asProblem(error);
      const at = fieldOf(refused);
      setProblem(refused);
      setBusy(false);
      if (at === undefined || at === "company") field.current?.focus();
      else if (!ALWAYS_SHOWN.includes(at)) setOpen(true);
    }
  };

  return (
    <>
      <form className="ask" onSubmit={start}>
        <div className="askrow">
          <label className="sr" htmlFor={`${hintId}-t`}>
            {isNamed ? "Company name" : "Ticker"}
          </label>
          {isNamed ? (
            <input
              id={`${hintId}-t`}
              ref={field}
              className="named"
              value={name}
              maxLength={80}
              placeholder="Company name"
              autoComplete="off"
              aria-invalid={problemOf("company") !== undefined}
              onChange={(event) => setName(event.target.value)}
            />
          ) : (
            <CompanyField
              id={`${hintId}-t`}
              describedBy={hintId}
              field={field}
              value={ticker}
              found={found.data?.tickers}
              isKnown={known !== undefined}
              onChange={setTicker}
            />
          )}
          {!isNamed && (
            <div className="who" id={hintId}>
              <Company
                ticker={asked}
                name={known?.name}
                fictional={known?.fictional}
                list={found.data}
                source={source}
                near={isName ? only : undefined}
                canLookUp={canLookUp}
              />
            </div>
          )}
          <Button
            look="primary"
            type="submit"
            disabled={busy || blocker !== undefined}
            aria-describedby={blocker ? `${hintId}-blocked` : undefined}
          >
            {busy ? "Starting" : "Start run"}
          </Button>
        </div>
        <FieldProblem>{problemOf("company")}</FieldProblem>
        <div className="opts">
          <div className="opt">
            <span className="lab">Rounds per move</span>
            <Segmented
              label="Rounds per move"
              options={ROUNDS}
              value={rounds}
              onChange={(value) => change("rounds", String(value), "10")}
            />
          </div>
          <div className="opt">
            <label className="lab" htmlFor={`${hintId}-b`}>
              Spend limit
            </label>
            <span className="money">
              $
              <input
                id={`${hintId}-b`}
                inputMode="decimal"
                value={budget}
                placeholder={estimate?.data?.cap_usd ?? "none"}
                aria-invalid={problemOf("budget") !== undefined}
                onChange={(event) => setBudget(event.target.value.replace(/[^0-9.]/g, ""))}
              />
            </span>
            <FieldProblem>{problemOf("budget")}</FieldProblem>
          </div>
          <div className="opt">
            <label className="lab" htmlFor={`${hintId}-c`}>
              Committee
            </label>
            <select
              id={`${hintId}-c`}
              value={options.committeeFile ? "" : committee}
              disabled={options.committeeFile !== undefined}
              onChange={(event) => setCommittee(event.target.value)}
            >
              {options.committeeFile && <option value="">from file</option>}
              {(committees ?? [{ name: "board" }]).map((one) => (
                <option key={one.name} value={one.name}>
                  {one.name}
                </option>
              ))}
            </select>
          </div>
          <div className="opt">
            <label className="lab" htmlFor={`${hintId}-s`}>
              Source data
            </label>
            <select
              id={`${hintId}-s`}
              value={source}
              onChange={(event) => {
                change("source", event.target.value, "filings");
                setProblem(undefined);
                if (event.target.value === "files") setOpen(true);
              }}
            >
              <option value="filings">SEC filings</option>
              <option value="files">your documents</option>
              <option value="synthetic">AI-generated (not real filings)</option>
            </select>
          </div>
          <label className="opt wide">
            <input
              type="checkbox"
              checked={waits}
              onChange={(event) => {
                setWaits(event.target.checked);
                change("wait", event.target.checked ? "moves" : "", "");
              }}
            />
            Pause for my review before the debates start
          </label>
        </div>
        <ConsultOptionsPanel
          options={options}
          source={source}
          problems={[problem, estimate?.problem]}
          open={open}
          onToggle={setOpen}
          onChange={(more) => {
            setOptions((before) => ({ ...before, ...more }));
            setProblem(undefined);
          }}
        />
      </form>
      <EstimateLine
        estimate={estimate}
        model={options.model.trim() || (settings?.model ?? null)}
        synthetic={source === "synthetic"}
      />
      <Blocked blocker={blocker} id={`${hintId}-blocked`} />
      <FormProblem problem={problem && fieldOf(problem) === undefined ? problem : undefined} />
    </>
  );
}

/** The company of the ticker and the date of its newest filing. */
function Company({
  ticker,
  name,
  fictional,
  list,
  near,
  source,
  canLookUp,
}: {
  ticker: string;
  name: string | undefined;
  fictional: boolean | undefined;
  list: TickerList | undefined;
  /** What the user may have meant. */
  near: TickerList["tickers"][number] | undefined;
  source: ConsultSource;
  /** Whether the server can look up companies other than the sample company. */
  canLookUp: boolean;
}) {
  const facts = useGet<Facts>(name && source === "filings" ? `/api/facts/${encodeURIComponent(ticker)}` : null);
  if (ticker === "") return <span className="muted">Ticker or name of a US-listed company</span>;
  if (name === undefined) {
    if (!list) return <span className="muted">Looking up the company</span>;
    return (
      <>
        <b>{near || canLookUp ? "No company with this ticker" : "Companies cannot be looked up"}</b>
        <span className="muted">
          {near ? `Did you mean ${near.ticker}, ${plain(near.name)}?` : "Try HLXI, a fictional company"}
        </span>
      </>
    );
  }
  const newest = facts.data?.newest_filing;
  const company = plain(name).replace(/ \(fictional\)$/, "");
  return (
    <>
      <b title={company}>{company}</b>
      <span className="muted">
        {fictional ? "Fictional demo company. " : ""}
        {newest ? (
          `Newest filing ${newest.form}, ${isoDay(newest.filed)}`
        ) : facts.problem ? (
          <CodeText text={facts.problem.message} />
        ) : source === "synthetic" ? (
          "AI-generated figures (not real filings)"
        ) : (
          "Reading filings"
        )}
      </span>
    </>
  );
}

function EstimateLine({
  estimate,
  model,
  synthetic,
}: {
  estimate: { data: Estimate | undefined; problem: Problem | undefined } | null;
  model: string | null;
  synthetic: boolean;
}) {
  const data = estimate?.data;
  if (!data)
    return (
      <p className="est">
        <span>
          {estimate?.problem ? (
            <CodeText text={estimate.problem.message} />
          ) : (
            "You see the estimate before anything is spent."
          )}
        </span>
      </p>
    );
  const { low_usd: low, high_usd: high } = data;
  const free = Number(high) === 0 && high !== null;
  return (
    <p className="est">
      <span>
        About <b>{count(data.all_calls)}</b> model calls{model ? ` (${model === "demo" ? "demo model" : model})` : ""}
      </span>
      {free && (
        <span>
          <b>free</b>
        </span>
      )}
      {!free && low !== null && high !== null && (
        <span>
          about{" "}
          <b>
            ${low}–{high}
          </b>
        </span>
      )}
      {cheaperVerdicts(data).map((text) => (
        <span key={text}>{text}</span>
      ))}
      {synthetic && (
        <Tag tone="warn" icon="warn">
          AI-generated (not real filings)
        </Tag>
      )}
      <span>
        <Icon name="check" /> You can close this tab: the run continues while the server runs.
      </span>
    </p>
  );
}

/** The request without its files. */
function startBody(
  company: string,
  rounds: number | null,
  source: ConsultSource,
  committee: string,
  budget: string,
  waits: boolean,
  options: ConsultOptions,
): StartConsultRequest {
  return {
    ticker: source === "files" ? "" : company,
    // A committee file has its own number of rounds.
    ...((rounds !== null || !options.committeeFile) && { rounds: rounds ?? 10 }),
    pause_after_moves: waits,
    ...optionsBody(options),
    ...(source === "files" && { name: company }),
    ...(source !== "filings" && { source }),
    ...(committee !== "board" && !options.committeeFile && { committee }),
    ...(Number(budget) > 0 && { budget_usd: budget }),
  };
}

/** The estimate of a request, as JSON; loaded again when it changes. */
function useEstimate(key: string | null): { data: Estimate | undefined; problem: Problem | undefined } | null {
  const [state, setState] = useState<{ data: Estimate | undefined; problem: Problem | undefined }>({
    data: undefined,
    problem: undefined,
  });
  useEffect(() => {
    if (key === null) return;
    let current = true;
    post<Estimate>("/api/estimate", JSON.parse(key)).then(
      (data) => current && setState({ data, problem: undefined }),
      (error) => current && setState({ data: undefined, problem: asProblem(error) }),
    );
    return () => {
      current = false;
    };
  }, [key]);
  return key === null ? null : state;
}
