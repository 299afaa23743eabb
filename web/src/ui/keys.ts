import { useLayoutEffect, useRef } from "react";

const SWITCH = "moothall-keys";

/** Whether single-key shortcuts are on; they can be turned off (WCAG 2.1.4). */
export function keysAreOn(): boolean {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true;
  }
}

export function switchKeys(on: boolean): void {
  try {
    localStorage.setItem(SWITCH, on ? "on" : "off");
  } catch {
    // Without storage they stay on for this page.
  }
}

/** Runs an action for a single key, unless a field has focus, a dialog is open or shortcuts are off. */
export function useKeys(actions: Record<string, () => void>): void {
  const latest = useRef(actions);
  latest.current = actions;
  // Before the page is painted: a key works as soon as a person can see what it does.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      const target = event.target as HTMLElement | null;
      if (target?.closest("input, textarea, select, [contenteditable], [role=dialog]")) return;
      if (event.key !== "Escape" && !keysAreOn()) return;
      const action = latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
