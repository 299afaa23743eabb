import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, useLocation } from "react-router";
import { afterEach, describe, expect, it } from "vitest";
import { AgentText } from "./agent-text";

afterEach(cleanup);

function Address() {
  return <output>{useLocation().search}</output>;
}

function show(text: string): HTMLElement {
  const { container } = render(
    <MemoryRouter>
      <AgentText text={text} />
      <Address />
    </MemoryRouter>,
  );
  return container.firstElementChild as HTMLElement;
}

describe("words of a model", () => {
  it("are text, whatever markup they hold", () => {
    const shown = show(`<img src=x onerror=alert(1)> <script>alert(1)</script> [x](javascript:alert(1)) **bold**`);
    expect(shown.textContent).toBe(
      "<img src=x onerror=alert(1)> <script>alert(1)</script> [x](javascript:alert(1)) bold",
    );
    expect(shown.querySelectorAll("img, script, a").length).toBe(0);
  });

  it("cannot hide or turn letters around", () => {
    expect(show("pay \u202Eevil\u202C now\u200B\u0007").textContent).toBe("pay \uFFFDevil\uFFFD now\uFFFD");
  });

  it("keep their headings, lists and paragraphs", () => {
    const shown = show("# Title\n\nFirst line\nsecond line\n\n- one\n- two\n\nLast");
    expect([...shown.children].map((child) => [child.tagName, child.textContent])).toEqual([
      ["H3", "Title"],
      ["P", "First line second line"],
      ["UL", "onetwo"],
      ["P", "Last"],
    ]);
  });

  it("cite facts that open by the address, and name assumptions as such", async () => {
    show("Sales grew [F0:Revenue:FY2025; F0:Revenue.yoy:FY2025], at [A1: a guess] cost.");
    expect(screen.getAllByRole("button").map((chip) => chip.textContent)).toEqual([
      "Revenue FY2025",
      "Revenue growth FY2025",
    ]);
    expect(screen.getByText("assumed: a guess").tagName).toBe("SPAN");
    await userEvent.click(screen.getByText("Revenue FY2025"));
    expect(screen.getByRole("status").textContent).toBe("?fact=F0%3ARevenue%3AFY2025");
  });
});
