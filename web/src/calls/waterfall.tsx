// The list of calls with a bar for each on a time axis. Only the rows on screen are in the document.
import clsx from "clsx";
import { type KeyboardEvent, memo, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { ModelCall } from "../gen/api";
import { count, plain } from "../model/format";
import { useMedia } from "../ui/use-width";
import { costOf, duration, markOf, short } from "./call-format";
import { type TimeScale, timeScale } from "./time-scale";

/** Height of a row in pixels, as in calls.css. */
const ROW = 32;
const PHONE_ROW = 56;

/** Rows above and below the screen. */
const EXTRA = 12;

const TICKS = [0, 0.25, 0.5, 0.75];

export function Waterfall({
  calls,
  origin,
  chosen,
  onChoose,
  onStep,
}: {
  calls: readonly ModelCall[];
  /** The time that START counts from, in milliseconds since 1970. */
  origin: number;
  chosen: string | undefined;
  onChoose: (call: string) => void;
  /** Chooses the call that is so many rows below the chosen one. */
  onStep: (by: number) => void;
}) {
  const phone = useMedia("(max-width: 720px)");
  const height = phone ? PHONE_ROW : ROW;
  const list = useRef<HTMLDivElement>(null);
  const [from, to] = useVisible(list, calls.length, height);
  const scale = useMemo(
    () =>
      timeScale(
        calls.map((call) => ({
          start: call.started_at_ms - (call.queued_ms ?? 0),
          end: call.started_at_ms + call.length_ms,
        })),
      ),
    [calls],
  );
  const at = calls.findIndex((call) => call.call === chosen);
  const moved = useRef(false);

  // A call chosen with the keyboard stays on screen.
  useLayoutEffect(() => {
    if (!moved.current || at < 0 || !list.current) return;
    moved.current = false;
    const top = list.current.getBoundingClientRect().top + at * height;
    const [first, last] = [HEAD, innerHeight - height * 2];
    if (top < first) scrollBy(0, top - first);
    else if (top > last) scrollBy(0, top - last);
    list.current.querySelector<HTMLElement>(`[data-at="${at}"] .callname`)?.focus({ preventScroll: true });
  }, [at, height]);

  const pressed = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
    if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moved.current = true;
    onStep(by);
  };

  const rows = [];
  for (let i = from; i < Math.min(to, calls.length); i++) {
    const call = calls[i];
    if (call)
      rows.push(
        <CallRow
          key={call.seq}
          call={call}
          at={i}
          top={i * height}
          chosen={i === at}
          origin={origin}
          scale={scale}
          choose={onChoose}
        />,
      );
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: most rows of the table are not in the document
    <div className="calltable" role="table" aria-label="Calls" aria-rowcount={calls.length + 1}>
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the header of a table is not interactive */}
      <div className="callrow callhead" role="row" aria-rowindex={1}>
        {["Start", "Call", "Model", "Tokens", "Cost", "Length", "Result"].map((title) => (
          // biome-ignore lint/a11y/useSemanticElements: as above
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <span key={title} role="columnheader" className={`c-${title.toLowerCase()}`}>
            {title}
          </span>
        ))}
        <Axis scale={scale} origin={origin} />
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      <div
        role="rowgroup"
        ref={list}
        className="callrows"
        style={{ height: calls.length * height }}
        onKeyDown={pressed}
      >
        {rows}
      </div>
    </div>
  );
}

/** Height of what sticks to the top of the page, in pixels. */
const HEAD = 52 + 30;

/** The rows on screen, as the page is scrolled. */
function useVisible(list: { current: HTMLElement | null }, total: number, height: number): [number, number] {
  const [visible, setVisible] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      if (!list.current) return;
      const top = -list.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.min(Math.floor(top / height) - EXTRA, Math.max(0, total - 1)));
      const to = Math.min(total, Math.ceil((top + innerHeight) / height) + EXTRA);
      setVisible((before) => (before[0] === from && before[1] === to ? before : [from, Math.max(to, 0)]));
    };
    const soon = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [list, total, height]);
  return visible;
}

function Axis({ scale, origin }: { scale: TimeScale; origin: number }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: the table is not made of table elements
    // biome-ignore lint/a11y/useFocusableInteractive: a header is not interactive
    <span className="c-bar axis" role="columnheader" aria-label="Timeline">
      {TICKS.map((place) => (
        <i key={place} style={{ left: `${place * 100}%` }}>
          {duration(Math.max(0, scale.time(place) - origin))}
        </i>
      ))}
    </span>
  );
}

const CallRow = memo(function CallRow({
  call,
  at,
  top,
  chosen,
  origin,
  scale,
  choose,
}: {
  call: ModelCall;
  at: number;
  top: number;
  chosen: boolean;
  origin: number;
  scale: TimeScale;
  choose: (call: string) => void;
}) {
  const reason = call.reasons?.[0];
  return (
    // biome-ignore lint/a11y/useSemanticElements: the table is not made of table elements
    // biome-ignore lint/a11y/useKeyWithClickEvents: the name in the row is the button for the keyboard
    // biome-ignore lint/a11y/useFocusableInteractive: as above
    <div
      className={clsx("callrow", chosen && "on")}
      role="row"
      aria-rowindex={at + 2}
      data-at={at}
      data-result={call.result}
      style={{ transform: `translateY(${top}px)` }}
      onClick={() => choose(call.call)}
    >
      <Cell name="start">{duration(call.started_at_ms - origin)}</Cell>
      <Cell name="call">
        <button type="button" className="callname" aria-pressed={chosen}>
          <i className={clsx("dot", markOf(call))} aria-hidden="true" />
          <span title={plain(call.call)}>{plain(call.call)}</span>
        </button>
      </Cell>
      <Cell name="model">
        <span title={plain(call.model)}>{plain(call.model)}</span>
      </Cell>
      <Cell name="tokens">
        <span title={`${count(call.prompt_tokens)} in, ${count(call.cached_tokens)} of them cached`}>
          {short(call.prompt_tokens)}
        </span>{" "}
        <span className="muted">→ {short(call.output_tokens)}</span>
      </Cell>
      <Cell name="cost">{costOf(call)}</Cell>
      <Cell name="length">
        {duration(call.length_ms)}
        {call.attempts > 1 && <span className="muted"> ×{call.attempts}</span>}
      </Cell>
      <Cell name="result">
        <span title={reason && plain(reason)}>{call.result}</span>
      </Cell>
      <Cell name="bar">
        <Bar call={call} scale={scale} origin={origin} />
      </Cell>
    </div>
  );
});

function Cell({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: the table is not made of table elements
    <span role="cell" className={`c-${name}`}>
      {children}
    </span>
  );
}

function Bar({ call, scale, origin }: { call: ModelCall; scale: TimeScale; origin: number }) {
  const start = scale.at(call.started_at_ms) * 100;
  const end = scale.at(call.started_at_ms + call.length_ms) * 100;
  const ready = scale.at(call.started_at_ms - (call.queued_ms ?? 0)) * 100;
  return (
    <>
      {start - ready > 0.1 && <i className="queued" style={{ left: `${ready}%`, width: `${start - ready}%` }} />}
      <i className={clsx("bar", markOf(call))} style={{ left: `${start}%`, width: `${end - start}%` }} />
      <span className="sr">
        {duration(call.started_at_ms - origin)} to {duration(call.started_at_ms + call.length_ms - origin)}
      </span>
    </>
  );
}
