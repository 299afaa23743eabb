import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { MemoryRouter, useLocation } from "react-router";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import fixture from "../../fixtures/view.json";
import type { RunView } from "../gen/run";
import { changeWords, ForkedFrom, ForkForm } from "./fork";

const view = fixture as unknown as RunView;
const sent: { path: string; body: unknown }[] = [];
let answer: () => Response;

beforeEach(() => {
  sent.length = 0;
  vi.stubGlobal("fetch", async (path: string, init?: RequestInit) => {
    if (path === "/api/session") return Response.json({ scopes: ["run"] });
    sent.push({ path, body: JSON.parse(String(init?.body)) });
    return answer();
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function Address() {
  return <output>{useLocation().pathname}</output>;
}

function show(): void {
  render(
    <MemoryRouter>
      <ForkForm view={view} onStarted={() => {}} />
      <Address />
    </MemoryRouter>,
  );
}

describe("a fork", () => {
  it("starts from the debates with another critic and another verdict, and its page opens", async () => {
    answer = () => Response.json({ run_id: "new" }, { status: 201 });
    show();
    await userEvent.type(screen.getByLabelText("Model of the critic"), "openai/gpt-5-mini");
    await userEvent.selectOptions(screen.getByLabelText("Verdict"), "blind panel, each move debated once");
    await userEvent.click(screen.getByRole("button", { name: "Start fork" }));
    const body = { from: "debates", set: { critic: "openai/gpt-5-mini" }, verdict: "panel" };
    expect(sent).toEqual([{ path: `/api/runs/${view.about.run_id}/fork`, body }]);
    expect(screen.getByRole("status").textContent).toBe("/runs/new");
  });

  it("shows why it was refused", async () => {
    const problem = { status: 422, code: "refused", detail: "no such model", hint: "choose another" };
    answer = () => Response.json(problem, { status: 422 });
    show();
    await userEvent.click(screen.getByRole("button", { name: "Moves" }));
    await userEvent.click(screen.getByRole("button", { name: "Start fork" }));
    expect(screen.getByRole("alert").textContent).toContain("no such model");
    expect(sent[0]?.body).toEqual({ from: "moves" });
  });

  it("names its parent and what differs", () => {
    const changes = [{ setting: "critic", before: "demo", after: "openai/gpt-5-mini" }];
    const parent = { run_id: "01a1dd22-30af-720e-bd62-e1beb0920949", from: "debates" as const, changes };
    const { container } = render(
      <MemoryRouter>
        <ForkedFrom view={{ ...view, about: { ...view.about, parent } }} />
      </MemoryRouter>,
    );
    expect(container.textContent).toContain("critic: demo → openai/gpt-5-mini");
    expect(screen.getByText("Compare the results").getAttribute("href")).toContain(`vs=${parent.run_id}`);
  });

  it("says if nothing changed or the parent was deleted", () => {
    expect(changeWords([])).toBe("No setting was changed.");
    expect(changeWords(undefined)).toBe("The earlier run was deleted.");
  });
});
