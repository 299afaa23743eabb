// The time axis of the waterfall. Long times without any call, such as a pause, are shortened.

export interface Span {
  /** In milliseconds since 1970. */
  start: number;
  end: number;
}

interface Piece {
  /** Real times. */
  from: number;
  to: number;
  /** The place of `from` on the axis, and the length of the piece there. */
  at: number;
  length: number;
  idle: boolean;
}

export interface TimeScale {
  start: number;
  end: number;
  /** The place of a time on the axis, from 0 to 1. */
  at: (time: number) => number;
  /** The time at a place on the axis. */
  time: (at: number) => number;
  /** The places of shortened times. */
  gaps: { at: number; length: number; ms: number }[];
}

/** A shorter time without calls is shown as it is. */
const SHORTEST_GAP = 15_000;

/** A shortened time takes this part of the time with calls. */
const GAP_SHARE = 0.02;

export function timeScale(spans: readonly Span[]): TimeScale {
  const pieces = piecesOf(spans);
  const start = pieces[0]?.from ?? 0;
  const last = pieces.at(-1);
  const end = last?.to ?? start;
  const whole = last ? last.at + last.length : 0;
  const at = (time: number) => {
    if (whole === 0) return 0;
    const piece = find(pieces, (one) => one.from <= time);
    if (!piece) return 0;
    const inside = piece.to > piece.from ? Math.min(1, (time - piece.from) / (piece.to - piece.from)) : 0;
    return (piece.at + inside * piece.length) / whole;
  };
  const time = (place: number) => {
    const piece = find(pieces, (one) => one.at <= place * whole);
    if (!piece) return start;
    const inside = piece.length > 0 ? Math.min(1, (place * whole - piece.at) / piece.length) : 0;
    return piece.from + inside * (piece.to - piece.from);
  };
  const gaps = pieces
    .filter((piece) => piece.idle)
    .map((piece) => ({ at: piece.at / whole, length: piece.length / whole, ms: piece.to - piece.from }));
  return { start, end, at, time, gaps };
}

function piecesOf(spans: readonly Span[]): Piece[] {
  const busy: { from: number; to: number }[] = [];
  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    const last = busy.at(-1);
    if (last && span.start - last.to < SHORTEST_GAP) last.to = Math.max(last.to, span.end);
    else busy.push({ from: span.start, to: span.end });
  }
  const active = busy.reduce((sum, one) => sum + one.to - one.from, 0);
  const gap = Math.max(1, active * GAP_SHARE);
  const pieces: Piece[] = [];
  let place = 0;
  for (const { from, to } of busy) {
    const before = pieces.at(-1);
    if (before) {
      pieces.push({ from: before.to, to: from, at: place, length: gap, idle: true });
      place += gap;
    }
    pieces.push({ from, to, at: place, length: to - from, idle: false });
    place += to - from;
  }
  return pieces;
}

/** The last piece that fits; the pieces are in order. */
function find(pieces: readonly Piece[], fits: (piece: Piece) => boolean): Piece | undefined {
  let [low, high] = [0, pieces.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const piece = pieces[middle];
    if (piece && fits(piece)) low = middle + 1;
    else high = middle;
  }
  return pieces[low - 1] ?? pieces[0];
}
