import { type FormEvent, useId, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { asProblem, Problem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { ServerSettings, StartProgramRequest, StartRunRequest, StartRunResponse } from "../gen/api";
import { Blocked } from "../home/blocked";
import { NumberField } from "../home/consult-options";
import { type FormField, fieldOf, problemText } from "../home/field-problem";
import { programBlocker } from "../home/readiness";
import { requestFiles } from "../home/request-files";
import { Field } from "../ui/field";
import { FilePicker } from "../ui/file-picker";
import { FormProblem } from "../ui/form-problem";
import { Button, Segmented } from "../ui/parts";

const ATTEMPTS = [1, 3, 5].map((value) => ({ value, name: String(value) }));

type ExpectationForm = "none" | "regex" | "text" | "schema";

/** Everything that a program can be started with beyond its task and attempts. */
interface ProgramOptions {
  inputs: File[];
  form: ExpectationForm;
  expected: string;
  check: string;
  expectFiles: string;
  image: string;
  isolation: string;
  timeout: string;
  memory: string;
  model: string;
  budget: string;
  budgetTokens: string;
}

const NO_OPTIONS: ProgramOptions = {
  inputs: [],
  form: "none",
  expected: "",
  check: "",
  expectFiles: "",
  image: "",
  isolation: "",
  timeout: "",
  memory: "",
  model: "",
  budget: "",
  budgetTokens: "",
};

/** The form that starts a program. */
export function ProgramForm() {
  const navigate = useNavigate();
  const fieldId = useId();
  const [params] = useSearchParams();
  const [task, setTask] = useState(() => params.get("task") ?? "");
  const [attempts, setAttempts] = useState(3);
  const [options, setOptions] = useState(NO_OPTIONS);
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const settings = useGet<ServerSettings>("/api/settings").data;
  const blocker = programBlocker(settings, useMay("run"), { model: options.model.trim(), image: options.image });
  const start = async (event: FormEvent) => {
    event.preventDefault();
    if (busy || blocker || task.trim() === "") return;
    setBusy(true);
    setProblem(undefined);
    try {
      const inputs = await requestFiles(options.inputs);
      const request: StartRunRequest = {
        workflow: "reflexion",
        task: task.trim(),
        attempts,
        ...(inputs.length > 0 && { inputs }),
        ...optionsBody(options),
      };
      const { run_id } = await post<StartRunResponse>("/api/runs", request, { "idempotency-key": crypto.randomUUID() });
      navigate(`/runs/${run_id}`);
    } catch (error) {
      const refused = asProblem(error);
      setProblem(refused);
      setBusy(false);
      if (fieldOf(refused) !== undefined) setOpen(true);
    }
  };
  return (
    <>
      <form className="panel taskform" onSubmit={start}>
        <label className="sr" htmlFor={fieldId}>
          Task
        </label>
        <textarea
          id={fieldId}
          className="task"
          rows={3}
          maxLength={4000}
          placeholder="Print the first ten primes, one per line"
          value={task}
          onChange={(event) => setTask(event.target.value)}
        />
        <div className="taskrow">
          <span className="lab">Attempts</span>
          <Segmented label="Attempts" options={ATTEMPTS} value={attempts} onChange={setAttempts} />
          <Button
            className="push"
            look="primary"
            type="submit"
            disabled={busy || blocker !== undefined || task.trim() === ""}
            aria-describedby={blocker ? `${fieldId}-blocked` : undefined}
          >
            {busy ? "Starting" : "Start"}
          </Button>
        </div>
        <details className="more" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>Options</summary>
          <Options
            options={options}
            problem={problem}
            onChange={(change) => {
              setOptions((before) => ({ ...before, ...change }));
              setProblem(undefined);
            }}
          />
        </details>
      </form>
      <Blocked blocker={blocker} id={`${fieldId}-blocked`} />
      <FormProblem problem={problem && fieldOf(problem) === undefined ? problem : undefined} />
    </>
  );
}

function optionsBody(options: ProgramOptions): Partial<StartProgramRequest> {
  const files = options.expectFiles.split(/[\s,]+/).filter((name) => name !== "");
  return {
    ...expectation(options),
    ...(options.check.trim() !== "" && { check: options.check }),
    ...(files.length > 0 && { expect_files: files }),
    ...(options.image !== "" && { image: options.image }),
    ...(options.isolation !== "" && { isolation: options.isolation }),
    ...(options.timeout !== "" && { timeout_seconds: Number(options.timeout) }),
    ...(options.memory !== "" && { memory_mib: Number(options.memory) }),
    ...(options.model.trim() !== "" && { model: options.model.trim() }),
    ...(Number(options.budget) > 0 && { budget_usd: options.budget }),
    ...(options.budgetTokens !== "" && { budget_tokens: Number(options.budgetTokens) }),
  };
}

function expectation({ form, expected }: ProgramOptions): Partial<StartProgramRequest> {
  if (expected === "") return {};
  switch (form) {
    case "none":
      return {};
    case "regex":
      return { expect_regex: expected };
    case "text":
      return { expect_text: expected };
    case "schema":
      try {
        return { expect_schema: JSON.parse(expected) as unknown };
      } catch {
        throw new Problem(0, "bad-expectation", "The schema is not valid JSON.");
      }
  }
}

function Options({
  options,
  problem,
  onChange,
}: {
  options: ProgramOptions;
  problem: Problem | undefined;
  onChange: (change: Partial<ProgramOptions>) => void;
}) {
  const images = useGet<ServerSettings>("/api/settings").data?.images ?? [];
  const text = (field: FormField) => problemText(field, problem);
  return (
    <div className="fields">
      <FilePicker
        label="Input files"
        hint="The program reads them as /inputs/NAME. Drop files here or choose them: 16 MiB each, 32 MiB together."
        files={options.inputs}
        problem={text("documents")}
        onChange={(inputs) => onChange({ inputs })}
      />
      <Field label="Expected output">
        <select value={options.form} onChange={(event) => onChange({ form: event.target.value as ExpectationForm })}>
          <option value="none">nothing in particular</option>
          <option value="regex">a match of a regular expression</option>
          <option value="text">exactly this text</option>
          <option value="schema">JSON that matches a schema</option>
        </select>
      </Field>
      {options.form !== "none" && (
        <Field
          label={{ regex: "Regular expression", text: "Text", schema: "JSON schema" }[options.form]}
          problem={text("expectation")}
        >
          <textarea
            rows={2}
            className="mono"
            spellCheck={false}
            value={options.expected}
            onChange={(event) => onChange({ expected: event.target.value })}
          />
        </Field>
      )}
      <Field label="Check script" hint="Python. It runs in a separate sandbox on the results and must exit with 0.">
        <textarea
          rows={2}
          className="mono"
          spellCheck={false}
          value={options.check}
          onChange={(event) => onChange({ check: event.target.value })}
        />
      </Field>
      <Field
        label="Required files"
        hint="Names in /workspace/out, separated by spaces."
        problem={options.form === "none" ? text("expectation") : undefined}
      >
        <input
          className="mono"
          spellCheck={false}
          placeholder="chart.png"
          value={options.expectFiles}
          onChange={(event) => onChange({ expectFiles: event.target.value })}
        />
      </Field>
      <div className="fieldrow">
        <Field label="Image">
          <select value={options.image} onChange={(event) => onChange({ image: event.target.value })}>
            <option value="">python</option>
            {images
              .filter((image) => image !== "python")
              .map((image) => (
                <option key={image}>{image}</option>
              ))}
          </select>
        </Field>
        <Field label="Isolation" problem={text("isolation")}>
          <select value={options.isolation} onChange={(event) => onChange({ isolation: event.target.value })}>
            <option value="">as configured</option>
            <option value="auto">strongest available</option>
            <option value="microvm">microVM</option>
            <option value="runsc">gVisor</option>
          </select>
        </Field>
        <NumberField
          label="Time limit (seconds)"
          value={options.timeout}
          placeholder="30"
          problem={text("timeout_seconds")}
          onChange={(timeout) => onChange({ timeout })}
        />
        <NumberField
          label="Memory (MiB)"
          value={options.memory}
          placeholder="256"
          problem={text("memory_mib")}
          onChange={(memory) => onChange({ memory })}
        />
        <Field label="Spend limit ($)" problem={text("budget")}>
          <input
            inputMode="decimal"
            placeholder="none"
            value={options.budget}
            onChange={(event) => onChange({ budget: event.target.value.replace(/[^0-9.]/g, "") })}
          />
        </Field>
        <NumberField
          label="Token limit"
          value={options.budgetTokens}
          placeholder="none"
          problem={undefined}
          onChange={(budgetTokens) => onChange({ budgetTokens })}
        />
        <Field label="Model" problem={text("models")}>
          <input
            className="mono"
            spellCheck={false}
            placeholder="as configured"
            value={options.model}
            onChange={(event) => onChange({ model: event.target.value })}
          />
        </Field>
      </div>
    </div>
  );
}
