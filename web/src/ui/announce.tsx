// One polite live region for the whole page. It announces at most once in five seconds, and only the latest message.
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from "react";

const PAUSE_MS = 5000;

const Announce = createContext<(text: string) => void>(() => {});

export function useAnnounce(): (text: string) => void {
  return useContext(Announce);
}

export function Announcer({ children }: { children: ReactNode }) {
  const [text, setText] = useState("");
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const say = useCallback((next: string) => {
    clearTimeout(timer.current);
    const speak = () => {
      last.current = Date.now();
      setText(next);
    };
    const rest = last.current + PAUSE_MS - Date.now();
    if (rest <= 0) speak();
    else timer.current = setTimeout(speak, rest);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <Announce.Provider value={say}>
      {children}
      <div className="sr" role="status" aria-live="polite">
        {text}
      </div>
    </Announce.Provider>
  );
}
