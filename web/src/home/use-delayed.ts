import { useEffect, useState } from "react";

/** The value as it was when it last stood still for a moment: a field that is typed in asks once, not per letter. */
export function useDelayed<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
