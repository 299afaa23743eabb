import { Link } from "react-router";
import type { Problem } from "../api/client";
import { CodeText } from "../ui/code-text";
import { Empty } from "../ui/parts";

/** Shown if a run cannot be loaded. */
export function RunProblem({ problem }: { problem: Problem }) {
  switch (problem.code) {
    case "run-not-found":
    case "not-found":
      return (
        <Empty page title="Run not found" action={<Link to="/runs">All runs</Link>}>
          It may have been deleted. Check the address.
        </Empty>
      );
    case "sign-in-first":
    case "unknown-credential":
    case "expired-credential":
    case "revoked-credential":
      return (
        <Empty page title="You are not signed in">
          Open the link that <code>moothall serve</code> printed when it started.
        </Empty>
      );
    default:
      return (
        <Empty page title={problem.message} action={<Link to="/runs">All runs</Link>}>
          {problem.hint && <CodeText text={problem.hint} />}
        </Empty>
      );
  }
}
