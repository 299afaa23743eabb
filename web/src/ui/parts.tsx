// Small parts that every screen uses.
import clsx from "clsx";
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Link } from "react-router";
import { Icon, type IconName } from "./icon";

type ButtonLook = {
  look?: "primary" | "ghost" | "danger" | undefined;
  size?: "small" | "icon" | undefined;
  icon?: IconName;
};

function looks({ look, size }: ButtonLook): string {
  return clsx(
    "btn",
    look === "primary" && "pri",
    look === "ghost" && "ghost",
    look === "danger" && "danger",
    size === "small" && "sm",
    size,
  );
}

export function Button({
  look,
  size,
  icon,
  children,
  className,
  ...rest
}: ButtonLook & ButtonHTMLAttributes<HTMLButtonElement>) {
  return (
    <button type="button" className={clsx(looks({ look, size }), className)} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function ButtonLink({
  look,
  size,
  icon,
  to,
  children,
  download,
}: ButtonLook & { to: string; children: ReactNode; download?: string | true }) {
  const inside = (
    <>
      {icon && <Icon name={icon} />}
      {children}
    </>
  );
  if (download !== undefined)
    return (
      <a className={looks({ look, size })} href={to} download={download === true ? "" : download}>
        {inside}
      </a>
    );
  return (
    <Link className={looks({ look, size })} to={to}>
      {inside}
    </Link>
  );
}

export type Tone = "warn" | "bad" | "good";

export function Tag({
  tone,
  icon,
  children,
  title,
}: {
  tone?: Tone | undefined;
  icon?: IconName | undefined;
  children: ReactNode;
  title?: string | undefined;
}) {
  return (
    <span className={clsx("tag", tone)} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}

export function Note({
  tone = "warn",
  icon = "warn",
  children,
  alert,
}: {
  tone?: "warn" | "bad" | "neutral" | "good";
  icon?: IconName;
  children: ReactNode;
  alert?: boolean;
}) {
  const look = { warn: "", bad: "bad", neutral: "neu", good: "ok" }[tone];
  return (
    <div className={clsx("note", look)} role={alert ? "alert" : undefined}>
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  );
}

/** An empty state: what belongs here and what to do. `page` if it fills the page. */
export function Empty({
  title,
  children,
  action,
  page,
}: {
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  page?: boolean;
}) {
  return (
    <div className="empty">
      {page ? <h1>{title}</h1> : <b>{title}</b>}
      {children && <span>{children}</span>}
      {action && <div className="act">{action}</div>}
    </div>
  );
}

export function Segmented<T extends string | number>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly { value: T; name: string }[];
  value: T;
  onChange: (value: T) => void;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset brings a border and a legend that no row of buttons wants
    <div className="seg" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.name}
        </button>
      ))}
    </div>
  );
}

export function Crumb({ children }: { children: ReactNode }) {
  return (
    <nav className="crumb" aria-label="Where you are">
      <Link to="/runs">Runs</Link>
      <span aria-hidden="true">/</span>
      {children}
    </nav>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <div className="loading" role="status">
      <span className="sr">Loading {what}</span>
      <i />
      <i />
      <i />
    </div>
  );
}
