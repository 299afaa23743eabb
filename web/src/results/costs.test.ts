import { describe, expect, it } from "vitest";
import type { CallCosts } from "../gen/run";
import { partsBy } from "./costs";

const row = (purpose: CallCosts["purpose"], model: string, cost_micro_usd: number): CallCosts => ({
  purpose,
  model,
  calls: 2,
  prompt_tokens: 10,
  output_tokens: 3,
  cost_micro_usd,
  unpriced_calls: 0,
});

describe("the cost of a run", () => {
  it("is divided without losing a micro-dollar", () => {
    const costs = [row("critic", "a", 1), row("decision-maker", "b", 20), row("score", "b", 300)];
    expect(partsBy(costs, (one) => one.model)).toEqual([
      { name: "a", calls: 2, micro: 1, unpriced: 0 },
      { name: "b", calls: 4, micro: 320, unpriced: 0 },
    ]);
  });
});
