import { useEffect, useState } from "react";

/** A number that grows at this interval while the page is visible, for lists that are loaded again. */
export function useTick(ms: number): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setTick((before) => before + 1);
    }, ms);
    return () => clearInterval(timer);
  }, [ms]);
  return tick;
}
