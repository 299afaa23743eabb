import type { ReactNode } from "react";
import type { Problem } from "../api/client";
import type { ConsultSource, StartConsultRequest, VerdictMode } from "../gen/api";
import { Field, FieldProblem } from "../ui/field";
import { FilePicker } from "../ui/file-picker";
import { VerdictModes } from "../ui/verdict-modes";
import { type FormField, problemText } from "./field-problem";
import { DOCUMENT_TYPES, requestFiles } from "./request-files";

const ROLES = [
  ["inference", "Inference"],
  ["analyst", "Analysts"],
  ["critic", "Critic"],
  ["decision-maker", "Decision makers"],
] as const;

/** Everything that a consultation can be started with beyond the fields that are always shown. */
export interface ConsultOptions {
  brief: string;
  documents: File[];
  committeeFile: { name: string; text: string } | undefined;
  addedMoves: string;
  asOf: string;
  moves: string;
  parallelMoves: string;
  model: string;
  models: Record<string, string>;
  news: string;
  newsUrl: string;
  newsFile: File | undefined;
  isolation: string;
  budgetTokens: string;
  verdict: "" | VerdictMode;
  panel: string;
  repeat: string;
  baseline: boolean;
  calculations: boolean;
  allowStale: boolean;
  acceptFindings: boolean;
}

export const NO_OPTIONS: ConsultOptions = {
  brief: "",
  documents: [],
  committeeFile: undefined,
  addedMoves: "",
  asOf: "",
  moves: "",
  parallelMoves: "",
  model: "",
  models: {},
  news: "",
  newsUrl: "",
  newsFile: undefined,
  isolation: "",
  budgetTokens: "",
  verdict: "",
  panel: "",
  repeat: "",
  baseline: false,
  calculations: false,
  allowStale: false,
  acceptFindings: false,
};

/** The request without its files, which is enough for an estimate. */
export function optionsBody(options: ConsultOptions) {
  const panel = options.panel.split(/[\s,]+/).filter((model) => model !== "");
  const hasPanel = options.verdict !== "off";
  const models = Object.fromEntries(Object.entries(options.models).filter(([, model]) => model.trim() !== ""));
  return {
    as_of: options.asOf === "" ? null : options.asOf,
    allow_stale: options.allowStale,
    baseline: options.baseline,
    accept_findings: options.acceptFindings,
    calculations: options.calculations,
    ...(options.brief.trim() !== "" && { brief: options.brief }),
    ...(options.committeeFile && { committee_file: options.committeeFile.text }),
    ...(options.addedMoves.trim() !== "" && { add_moves: options.addedMoves }),
    ...(options.moves !== "" && { moves: Number(options.moves) }),
    ...(options.parallelMoves !== "" && { parallel_moves: Number(options.parallelMoves) }),
    ...(options.model.trim() !== "" && { model: options.model.trim() }),
    ...(Object.keys(models).length > 0 && { models }),
    ...(options.news === "gdelt" && { news: options.news }),
    ...(options.news === "rss" && options.newsUrl.trim() !== "" && { news: `rss:${options.newsUrl.trim()}` }),
    ...(options.budgetTokens !== "" && { budget_tokens: Number(options.budgetTokens) }),
    ...(options.isolation !== "" && { isolation: options.isolation }),
    ...(options.verdict !== "" && { verdict: options.verdict }),
    ...(hasPanel && panel.length > 0 && { panel }),
    ...(hasPanel && options.repeat !== "" && { repeat: Number(options.repeat) }),
  } satisfies Partial<StartConsultRequest>;
}

/** The files of the request. */
export async function optionsFiles(options: ConsultOptions, source: ConsultSource) {
  const hasDocuments = source !== "synthetic" && options.documents.length > 0;
  const [news] = options.news === "file" && options.newsFile ? await requestFiles([options.newsFile]) : [];
  return {
    ...(hasDocuments && { documents: await requestFiles(options.documents) }),
    ...(news && { news_file: news }),
  };
}

/** The options of a consultation. Each problem is shown next to its field. */
export function ConsultOptionsPanel({
  options,
  source,
  problems,
  open,
  onToggle,
  onChange,
}: {
  options: ConsultOptions;
  source: ConsultSource;
  problems: (Problem | undefined)[];
  open: boolean;
  onToggle: (open: boolean) => void;
  onChange: (change: Partial<ConsultOptions>) => void;
}) {
  const problem = (field: FormField) => problemText(field, ...problems);
  return (
    <details className="more" open={open} onToggle={(event) => onToggle(event.currentTarget.open)}>
      <summary>Options</summary>
      <div className="fields">
        {source !== "synthetic" && (
          <FilePicker
            label="Documents"
            hint="Markdown, text, CSV or PDF. Drop files here or choose them: at most 200 files, 32 MiB together."
            accept={DOCUMENT_TYPES}
            files={options.documents}
            problem={problem("documents")}
            onChange={(documents) => onChange({ documents })}
          />
        )}
        <Field label="Brief" hint="Question, goals and constraints. Every analyst reads it." problem={problem("brief")}>
          <textarea
            rows={2}
            maxLength={4000}
            value={options.brief}
            onChange={(event) => onChange({ brief: event.target.value })}
          />
        </Field>
        <CommitteeFile options={options} problem={problem("committee")} onChange={onChange} />
        <Field
          label="Your own moves"
          hint="TOML or JSON; each move has a title and a thesis."
          problem={problem("added")}
        >
          <textarea
            rows={2}
            className="mono"
            spellCheck={false}
            placeholder={'title = "Sell the idle plant"\nthesis = "It costs more than it earns."'}
            value={options.addedMoves}
            onChange={(event) => onChange({ addedMoves: event.target.value })}
          />
        </Field>
        <div className="fieldrow">
          <NumberField
            label="Moves"
            value={options.moves}
            problem={problem("moves")}
            onChange={(moves) => onChange({ moves })}
          />
          <NumberField
            label="Parallel moves"
            value={options.parallelMoves}
            problem={problem("parallel_moves")}
            onChange={(parallelMoves) => onChange({ parallelMoves })}
          />
          <NumberField
            label="Token limit"
            value={options.budgetTokens}
            placeholder="none"
            problem={undefined}
            onChange={(budgetTokens) => onChange({ budgetTokens })}
          />
          <Field label="As of">
            <input type="date" value={options.asOf} onChange={(event) => onChange({ asOf: event.target.value })} />
          </Field>
          <Field label="Isolation" problem={problem("isolation")}>
            <select value={options.isolation} onChange={(event) => onChange({ isolation: event.target.value })}>
              <option value="">as configured</option>
              <option value="auto">strongest available</option>
              <option value="microvm">microVM</option>
              <option value="runsc">gVisor</option>
              <option value="none">none</option>
            </select>
          </Field>
          <Field label="Verdict">
            <select
              value={options.verdict}
              onChange={(event) => onChange({ verdict: event.target.value as ConsultOptions["verdict"] })}
            >
              <option value="">as the committee says</option>
              <VerdictModes />
            </select>
          </Field>
          <Field label="News" problem={problem("news")}>
            <select value={options.news} onChange={(event) => onChange({ news: event.target.value })}>
              <option value="">none</option>
              <option value="gdelt">GDELT</option>
              <option value="rss">from a feed</option>
              <option value="file">from a file</option>
            </select>
          </Field>
        </div>
        {options.verdict !== "off" && (
          <div className="fieldrow">
            <Field
              label="Models of the panel"
              hint="Separated by commas; several models that do not debate judge best."
            >
              <input
                className="mono"
                spellCheck={false}
                placeholder="openai/gpt-5-mini, google/gemini-3.1-flash-lite"
                value={options.panel}
                onChange={(event) => onChange({ panel: event.target.value })}
              />
            </Field>
            <NumberField
              label="Repeat"
              value={options.repeat}
              placeholder="1"
              problem={undefined}
              onChange={(repeat) => onChange({ repeat })}
            />
          </div>
        )}
        {options.news === "rss" && (
          <Field label="Address of the feed" hint="RSS, Atom or JSON, over https.">
            <input
              type="url"
              placeholder="https://example.com/feed.xml"
              value={options.newsUrl}
              onChange={(event) => onChange({ newsUrl: event.target.value })}
            />
          </Field>
        )}
        {options.news === "file" && (
          <FilePicker
            label="News file"
            hint="An RSS, Atom or JSON feed, or a GDELT response."
            single
            files={options.newsFile ? [options.newsFile] : []}
            problem={undefined}
            onChange={([newsFile]) => onChange({ newsFile })}
          />
        )}
        <Models options={options} problem={problem("models")} onChange={onChange} />
        <Check
          checked={options.baseline}
          onChange={(baseline) => onChange({ baseline })}
          label="Also score every move without its debate"
        />
        <Check
          checked={options.calculations}
          onChange={(calculations) => onChange({ calculations })}
          label="Let speakers attach calculations, each run in its own sandbox"
        />
        <Check
          checked={options.acceptFindings}
          onChange={(acceptFindings) => onChange({ acceptFindings })}
          label="Also rank moves with wrong numbers or bad citations"
        />
        {source === "filings" && (
          <Check
            checked={options.allowStale}
            onChange={(allowStale) => onChange({ allowStale })}
            label="Accept a company without an annual report for 18 months"
          />
        )}
      </div>
    </details>
  );
}

/** A committee file is text, so the estimate can check it before the run starts. */
function CommitteeFile({
  options,
  problem,
  onChange,
}: {
  options: ConsultOptions;
  problem: string | undefined;
  onChange: (change: Partial<ConsultOptions>) => void;
}) {
  const { committeeFile } = options;
  const chosen = committeeFile ? [new File([committeeFile.text], committeeFile.name)] : [];
  return (
    <FilePicker
      label="Committee file"
      hint="TOML, instead of a committee of this server. `moothall committee new` creates one."
      accept=".toml"
      single
      files={chosen}
      problem={problem}
      onChange={([file]) => {
        if (!file) onChange({ committeeFile: undefined });
        else void file.text().then((text) => onChange({ committeeFile: { name: file.name, text } }));
      }}
    />
  );
}

function Models({
  options,
  problem,
  onChange,
}: {
  options: ConsultOptions;
  problem: string | undefined;
  onChange: (change: Partial<ConsultOptions>) => void;
}) {
  return (
    <fieldset className="models">
      <legend className="lab">Models, as provider/name; fallbacks after a comma</legend>
      <div className="fieldrow">
        <Field label="All roles">
          <input
            className="mono"
            spellCheck={false}
            placeholder="as configured"
            value={options.model}
            onChange={(event) => onChange({ model: event.target.value })}
          />
        </Field>
        {ROLES.map(([role, name]) => (
          <Field key={role} label={name}>
            <input
              className="mono"
              spellCheck={false}
              placeholder="same"
              value={options.models[role] ?? ""}
              onChange={(event) => onChange({ models: { ...options.models, [role]: event.target.value.trim() } })}
            />
          </Field>
        ))}
      </div>
      <FieldProblem>{problem}</FieldProblem>
    </fieldset>
  );
}

export function NumberField({
  label,
  value,
  problem,
  placeholder = "default",
  onChange,
}: {
  label: string;
  value: string;
  problem: string | undefined;
  placeholder?: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} problem={problem}>
      <input
        inputMode="numeric"
        value={value}
        placeholder={placeholder}
        onChange={(event) => onChange(event.target.value.replace(/[^0-9]/g, "").slice(0, 12))}
      />
    </Field>
  );
}

function Check({
  checked,
  label,
  onChange,
}: {
  checked: boolean;
  label: ReactNode;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label className="checkline">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}
