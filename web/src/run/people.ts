// Names of committee members.
import type { RunView } from "../gen/run";
import { plain } from "../model/format";

/** The names of the built-in committee, short enough for a tab. */
const SHORT: Record<string, string> = {
  "Growth Strategist": "Growth",
  "Operational Pragmatist": "Operations",
  "Stakeholder Value Advocate": "Stakeholders",
};

/** The name of a decision maker, or its id. */
export function seatName(view: RunView, id: string): string {
  return plain(view.about.committee?.decision_makers.find((seat) => seat.id === id)?.name ?? id);
}

export function shortName(view: RunView, id: string): string {
  const name = seatName(view, id);
  return SHORT[name] ?? name;
}

export function criticName(view: RunView): string {
  return plain(view.about.committee?.critic.name ?? "Critic");
}
