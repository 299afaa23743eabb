import { render } from "@testing-library/react";
import { useLayoutEffect } from "react";
import { expect, it, vi } from "vitest";
import { useKeys } from "./keys";

function Buttons({ onApprove }: { onApprove: () => void }) {
  useKeys({ a: onApprove });
  return null;
}

/** Presses a key before the browser could paint. */
function Impatient({ onApprove }: { onApprove: () => void }) {
  useLayoutEffect(() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  }, []);
  return <Buttons onApprove={onApprove} />;
}

it("runs the action of a key that is pressed as soon as the page is there", () => {
  const approve = vi.fn();
  render(<Impatient onApprove={approve} />);
  expect(approve).toHaveBeenCalledOnce();
});
