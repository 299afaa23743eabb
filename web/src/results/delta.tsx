import clsx from "clsx";

/** The difference to another run; nothing without a comparison. */
export function Delta({ now, before }: { now: number; before: number | undefined }) {
  if (before === undefined) return null;
  const by = now - before;
  return (
    <span className={clsx("dl", by > 0 && "up", by < 0 && "dn")}>
      <span className="sr">against the other run </span>
      {by > 0 ? `+${by}` : by < 0 ? `−${-by}` : "±0"}
    </span>
  );
}
