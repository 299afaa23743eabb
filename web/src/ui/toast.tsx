import { createContext, type ReactNode, useCallback, useContext, useEffect, useState } from "react";
import { CodeText } from "./code-text";

interface Toast {
  text: string;
  tone: "neutral" | "bad";
}

const Show = createContext<(toast: Toast) => void>(() => {});

export function useToast(): (toast: Toast) => void {
  return useContext(Show);
}

/** One short message at a time, at the bottom; it never moves the page. */
export function Toasts({ children }: { children: ReactNode }) {
  const [toast, setToast] = useState<Toast>();
  const show = useCallback((next: Toast) => setToast(next), []);
  useEffect(() => {
    if (!toast) return;
    const timer = setTimeout(() => setToast(undefined), toast.tone === "bad" ? 9000 : 4000);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <Show.Provider value={show}>
      {children}
      <div className="toasts" role="status">
        {toast && (
          <div className={`toast ${toast.tone}`}>
            <CodeText text={toast.text} />
          </div>
        )}
      </div>
    </Show.Provider>
  );
}
