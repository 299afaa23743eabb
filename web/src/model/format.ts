// Numbers, times and untrusted text as the product shows them.

import { DECEIVING, WITHOUT_INK } from "../gen/text";

export function usd(micro: number): string {
  const dollars = micro / 1e6;
  if (micro > 0 && dollars < 0.01) return "<$0.01";
  return `$${dollars.toFixed(2)}`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** `07:42`, or `1:07:42`. */
export function clock(ms: number): string {
  const all = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${two(minutes)}:${two(seconds)}`;
}

/** `8 min ago`, `Yesterday`, `8 Nov`. */
export function ago(iso: string, now: number): string {
  const then = new Date(iso);
  const seconds = (now - then.getTime()) / 1000;
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (sameDay(then, new Date(now))) return `${Math.round(seconds / 3600)} h ago`;
  if (sameDay(then, new Date(now - 86_400_000))) return "Yesterday";
  return day(then, now);
}

export function dayAndTime(iso: string): string {
  const then = new Date(iso);
  return `${then.getDate()} ${MONTHS[then.getMonth()]} ${then.getFullYear()}, ${timeOf(iso)}`;
}

export function timeOf(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

export function timeWithSeconds(iso: string): string {
  return new Date(iso).toLocaleTimeString("en-GB");
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function day(then: Date, now: number): string {
  const year = then.getFullYear() === new Date(now).getFullYear() ? "" : ` ${then.getFullYear()}`;
  return `${then.getDate()} ${MONTHS[then.getMonth()]}${year}`;
}

/** `2026-02-26` as `26 Feb 2026`. */
export function isoDay(iso: string): string {
  const [year, month, date] = iso.split("-").map(Number);
  if (!year || !month || !date) return iso;
  return `${date} ${MONTHS[month - 1] ?? month} ${year}`;
}

function sameDay(one: Date, other: Date): boolean {
  return one.toDateString() === other.toDateString();
}

/** The short form of a run's id: its start time. The command line shows and accepts the same. */
export function shortId(runId: string): string {
  return runId.slice(0, 13);
}

/**
 * Untrusted text, safe to show: characters that change the direction of text or control a terminal are replaced, and
 * characters without ink are left out, as on the command line.
 */
export function plain(text: string): string {
  return text.replace(DECEIVING, "\ufffd").replace(WITHOUT_INK, "");
}

/** The text with a capital first letter, for headings. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
