import { useMay } from "../api/session";
import type { RunSummary } from "../gen/api";
import { CONDITION, conditionOfSummary } from "../model/status";
import { Tag } from "../ui/parts";

/** The status of a run in a list. */
export function StateTag({ run }: { run: RunSummary }) {
  const mayReview = useMay("review") !== false;
  const condition = conditionOfSummary(run);
  const { word, tone, icon } = CONDITION[condition];
  return (
    <Tag tone={tone === "warn" || tone === "bad" ? tone : undefined} icon={icon}>
      {condition === "needs-review" && !mayReview ? "Needs review" : word}
    </Tag>
  );
}
