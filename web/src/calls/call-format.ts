// Numbers of the call log.
import type { CallSum, ModelCall } from "../gen/api";
import { clock } from "../model/format";

/** `850 ms`, `12.3 s`, `04:05`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return clock(ms);
}

/** A cost to the millionth of a dollar: `$0.001234`, and `$1.20` if two decimals are exact. */
export function exactUsd(micro: number): string {
  const text = `${Math.floor(micro / 1e6)}.${String(micro % 1e6).padStart(6, "0")}`;
  return `$${text.replace(/(\.\d\d\d*?)0+$/, "$1")}`;
}

export function costOf(call: ModelCall): string {
  if (call.cost_micro_usd !== undefined) return exactUsd(call.cost_micro_usd);
  return call.result === "failed" ? "–" : "unknown";
}

export function costOfSum(sum: CallSum): string {
  if (sum.unpriced_calls === 0) return exactUsd(sum.cost_micro_usd);
  return sum.cost_micro_usd === 0 ? "price unknown" : `${exactUsd(sum.cost_micro_usd)} and more`;
}

/** `12.3k`, `4.56M`. */
export function short(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 1e6) return `${(tokens / 1e3).toFixed(tokens < 1e4 ? 1 : 0)}k`;
  return `${(tokens / 1e6).toFixed(2)}M`;
}

/** The colour of a member, by the class of its mark. */
export function markOf(call: ModelCall): "C" | "D1" | "D2" | "D3" | "" {
  if (call.member === "critic") return "C";
  return call.member === "D1" || call.member === "D2" || call.member === "D3" ? call.member : "";
}
