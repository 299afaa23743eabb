import { useSearchParams } from "react-router";

/** Evidence that a sentence rests on. Opens the fact with its filing; the address says which. */
export function Cite({ id }: { id: string }) {
  const [, setParams] = useSearchParams();
  const shown = citeName(id);
  // `[A1: …]` is an assumption by its author's own word: there is nothing to open.
  if (/^A[0-9]+\b/.test(id))
    return (
      <span className="cite guess" title={`Assumption: ${id}`}>
        assumed{id.includes(":") ? `: ${id.slice(id.indexOf(":") + 1).trim()}` : ""}
      </span>
    );
  return (
    <button
      type="button"
      className="cite"
      title={id}
      onClick={() =>
        setParams(
          (params) => {
            params.set("fact", id);
            return params;
          },
          { replace: false, preventScrollReset: true },
        )
      }
    >
      {shown}
    </button>
  );
}

/** `F0:Revenue.yoy:FY2025` as `Revenue.yoy FY2025`; others as they are. */
export function citeName(id: string): string {
  const fact = /^F0:(.+):([^:]+)$/.exec(id);
  return fact ? `${fact[1]} ${fact[2]}` : id;
}
