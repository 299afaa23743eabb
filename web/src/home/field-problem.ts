import type { Problem } from "../api/client";

/** A field of the start pages that an error can belong to. */
export type FormField =
  | "company"
  | "documents"
  | "committee"
  | "added"
  | "news"
  | "models"
  | "budget"
  | "rounds"
  | "moves"
  | "parallel_moves"
  | "isolation"
  | "brief"
  | "expectation"
  | "timeout_seconds"
  | "memory_mib";

/** The field that a problem is about; `undefined` if it is about none. */
export function fieldOf(problem: Problem): FormField | undefined {
  switch (problem.code) {
    case "bad-ticker":
    case "unknown-ticker":
    case "ambiguous-ticker":
    case "stale-company":
    case "bad-name":
      return "company";
    case "bad-file":
    case "too-large":
      return "documents";
    case "bad-committee":
    case "unknown-committee":
      return "committee";
    case "bad-moves":
      return "added";
    case "bad-news":
      return "news";
    case "bad-model":
    case "key-missing":
      return "models";
    case "bad-budget":
      return "budget";
    case "bad-isolation":
    case "no-sandbox":
      return "isolation";
    case "bad-expectation":
      return "expectation";
    case "out-of-range": {
      // The message starts with the name of the field: `rounds` must be …
      const name = /^`([a-z_]+)`/.exec(problem.message)?.[1];
      const named = ["rounds", "moves", "parallel_moves", "timeout_seconds", "memory_mib"] as const;
      return named.find((one) => one === name);
    }
    default:
      return undefined;
  }
}

/** The text of the first problem that belongs to a field. */
export function problemText(field: FormField, ...problems: (Problem | undefined)[]): string | undefined {
  const found = problems.find((one) => one && fieldOf(one) === field);
  return found && [found.message, found.hint].filter(Boolean).join(". ");
}
