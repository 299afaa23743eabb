import type { Problem } from "../api/client";
import { CodeText } from "./code-text";
import { Note } from "./parts";

/** Why a request was refused, with the hint of the server. */
export function FormProblem({ problem }: { problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <div className="formproblem">
      <Note tone="bad" alert>
        <b>
          <CodeText text={problem.message} />
        </b>{" "}
        {problem.hint && <CodeText text={problem.hint} />}
      </Note>
    </div>
  );
}
