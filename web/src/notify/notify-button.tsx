import { useEffect, useRef, useState } from "react";
import type { RunView } from "../gen/run";
import { isOver } from "../model/reduce";
import { Button } from "../ui/parts";
import { useToast } from "../ui/toast";
import { noticeOf } from "./notices";

/** Asks the browser, on a click, to notify when the run ends or needs a person. Nothing is asked before. */
export function NotifyButton({ view }: { view: RunView }) {
  const toast = useToast();
  const [on, setOn] = useState(false);
  const state = view.status.state;
  const before = useRef(state);
  useEffect(() => {
    if (state === before.current) return;
    before.current = state;
    const notice = noticeOf(view);
    if (!on || !notice) return;
    // The tag replaces an earlier notification of the same run.
    const shown = new Notification(notice.title, { body: notice.body, tag: view.about.run_id });
    shown.onclick = () => focus();
  }, [state, on, view]);
  if (isOver(view.status) || typeof Notification === "undefined") return null;
  const ask = async () => {
    if (on) return setOn(false);
    const answer = await Notification.requestPermission();
    setOn(answer === "granted");
    toast(
      answer === "granted"
        ? { text: "You get a notification when the run ends or needs you.", tone: "neutral" }
        : { text: "The browser blocks notifications of this page. Allow them in its site settings.", tone: "bad" },
    );
  };
  return (
    <Button icon="bell" aria-pressed={on} onClick={ask}>
      {on ? "Notifying" : "Notify me"}
    </Button>
  );
}
