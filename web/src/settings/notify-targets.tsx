import type { NotifyTargetRow } from "../gen/api";
import { ago, plain } from "../model/format";
import { Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";
import { Row } from "./row";

/** Receivers of notices about runs and drafts, and how the last attempt ended. */
export function NotifyTargets({ targets }: { targets: readonly NotifyTargetRow[] }) {
  const now = useNow(30_000);
  if (targets.length === 0)
    return (
      <p className="muted">
        No receivers yet. Add <code>[notify.target.NAME]</code> to the configuration, then run{" "}
        <code>moothall notify test</code>.
      </p>
    );
  return targets.map((target) => (
    <Row
      key={target.name}
      name={`${target.name} (${target.kind})`}
      below={
        <>
          {target.events.join(", ")}
          {target.waiting > 0 && `. Waiting: ${target.waiting}`}
          {target.last_error !== null && <>. Last error: {plain(target.last_error)}</>}
        </>
      }
    >
      {target.last_at === null ? (
        <Tag>not used yet</Tag>
      ) : target.last_error === null ? (
        <Tag tone="good" icon="check">
          delivered {ago(target.last_at, now)}
        </Tag>
      ) : (
        <Tag tone="bad">failed {ago(target.last_at, now)}</Tag>
      )}
    </Row>
  ));
}
