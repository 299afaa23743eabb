import { measureName } from "../model/measures";
import { useAddress } from "./use-address";

/** A citation. Opens the fact with its filing; the address says which. */
export function Cite({ id, tight }: { id: string; tight?: boolean }) {
  const [, change] = useAddress();
  const shown = citeName(id);
  // `[A1: …]` is marked as an assumption: there is nothing to open.
  if (/^A[0-9]+\b/.test(id))
    return (
      <span className={tight ? "cite guess tight" : "cite guess"} title={`Assumption: ${id}`}>
        assumed{id.includes(":") ? `: ${id.slice(id.indexOf(":") + 1).trim()}` : ""}
      </span>
    );
  return (
    <button
      type="button"
      className={tight ? "cite tight" : "cite"}
      title={id}
      onClick={() => change({ fact: id }, { replace: false, preventScrollReset: true })}
    >
      {shown}
    </button>
  );
}

/** `F0:Revenue.yoy:FY2025` as `Revenue growth FY2025`, `T0:…:1A:4` as `item 1A §4`; others unchanged. */
export function citeName(id: string): string {
  const fact = /^F0:(.+):([^:]+)$/.exec(id);
  if (fact) return `${measureName(fact[1] ?? "")} ${fact[2]}`;
  const passage = /^T0:[^:]+:([^:]+):([^:]+)$/.exec(id);
  return passage ? `item ${passage[1]} §${passage[2]}` : id;
}
