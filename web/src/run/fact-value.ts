import type { Fact } from "../api/facts";

/** A short form of a filed value: `$1,215 M`, `13.8%`. The sheet of the fact has the exact value. */
export function factValue(fact: Pick<Fact, "value" | "unit">): string {
  const value = Number(fact.value);
  if (!Number.isFinite(value)) return fact.value;
  switch (fact.unit) {
    case "ratio":
      return Math.abs(value) < 5 ? `${(value * 100).toFixed(1)}%` : `${value.toFixed(1)}×`;
    case "days":
      return `${value.toFixed(0)} days`;
    default:
      return scaled(value, fact.unit === "USD" ? "$" : "") + (fact.unit === "USD" ? "" : ` ${fact.unit}`);
  }
}

function scaled(value: number, sign: string): string {
  const size = Math.abs(value);
  const minus = value < 0 ? "−" : "";
  if (size >= 1e6)
    return `${minus}${sign}${(size / 1e6).toLocaleString("en", { maximumFractionDigits: size < 1e8 ? 1 : 0 })} M`;
  return `${minus}${sign}${size.toLocaleString("en", { maximumFractionDigits: 2 })}`;
}
