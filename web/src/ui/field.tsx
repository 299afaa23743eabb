import { cloneElement, type ReactElement, type ReactNode, useId } from "react";
import { CodeText } from "./code-text";

interface Control {
  id?: string;
  "aria-describedby"?: string | undefined;
  "aria-invalid"?: boolean;
}

/** A labelled control, with a hint and its problem below it. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  label: string;
  hint?: string;
  problem?: string | undefined;
  children: ReactElement<Control>;
}) {
  const id = useId();
  return (
    <div className="field">
      <label className="lab" htmlFor={id}>
        {label}
      </label>
      {cloneElement(children, {
        id,
        "aria-describedby": hint ? `${id}-h` : undefined,
        "aria-invalid": problem !== undefined,
      })}
      {hint && (
        <p className="muted" id={`${id}-h`}>
          <CodeText text={hint} />
        </p>
      )}
      <FieldProblem>{problem}</FieldProblem>
    </div>
  );
}

/** The problem of a field, next to it. */
export function FieldProblem({ children }: { children: ReactNode }) {
  if (!children) return null;
  return (
    <p className="fieldproblem" role="alert">
      {typeof children === "string" ? <CodeText text={children} /> : children}
    </p>
  );
}
