/** Spent, projected (hatched) and the cap, on one line. */
export function SpendMeter({ spent, projected, cap }: { spent: number; projected: number; cap: number }) {
  const part = (value: number) => Math.min(100, Math.max(0, (value / cap) * 100));
  const done = part(spent);
  const ahead = Math.max(0, part(projected) - done);
  return (
    <div
      className="mbar"
      role="img"
      aria-label={`Spent ${Math.round(done)} percent of the limit, on track for ${Math.round(done + ahead)} percent`}
    >
      <span className="s" style={{ width: `${done}%` }} />
      <span className="p" style={{ left: `${done}%`, width: `${ahead}%` }} />
      <span className="cap" />
    </div>
  );
}
