import type { ReactNode } from "react";
import { CodeText } from "../ui/code-text";

/** A setting and its value, with an optional note below. */
export function Row({ name, children, below }: { name: string; children: ReactNode; below?: ReactNode }) {
  return (
    <div className={below ? "setrow long" : "setrow"}>
      <span>{name}</span>
      <span className="setval">{children}</span>
      {below && <span className="keyhint muted">{typeof below === "string" ? <CodeText text={below} /> : below}</span>}
    </div>
  );
}
