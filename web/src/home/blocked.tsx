import { CodeText, Command } from "../ui/code-text";
import { Note } from "../ui/parts";
import type { Blocker } from "./readiness";

/** Why the button above is disabled, with the command that helps. */
export function Blocked({ blocker, id }: { blocker: Blocker | undefined; id: string }) {
  if (!blocker) return null;
  return (
    <div className="formproblem" id={id}>
      <Note tone="warn">
        <b>
          <CodeText text={blocker.reason} />
        </b>{" "}
        {blocker.command && <Command text={blocker.command} />}
      </Note>
    </div>
  );
}
