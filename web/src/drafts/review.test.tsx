import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { MemoryRouter, Route, Routes } from "react-router";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { forgetSession } from "../api/client";
import type { DraftDetail, DraftLine, DraftRow } from "../gen/api";
import Draft from "../routes/draft";
import { type Choices, NO_CHOICES } from "./choices";
import { CommentList } from "./comments";
import { FileDiff } from "./diff";
import { SayBar } from "./say";

// The test environment has neither locks nor event streams.
vi.mock("./use-news", () => ({ useDraftNews: () => 0 }));

const line = (number: number, text: string): DraftLine => ({
  side: "added",
  old: null,
  new: number,
  parts: [{ text, is_changed: false }],
  is_cut: false,
  has_no_newline: false,
  findings: [],
  comments: [],
});

const draft: DraftRow = {
  draft_id: "drf_1",
  workspace: "w",
  task_id: "t",
  owner: "worker:ada/agent",
  path: "Makefile",
  rename_to: null,
  change: "edited",
  state: "escalated",
  revision: 1,
  touched_at: "2026-11-15T18:00:00Z",
  submitted_at: null,
  summary: "",
  together: ["drf_1"],
  seal: "5ea1",
  findings: [],
  reviewed: null,
  conflict: null,
};

const detail: DraftDetail = {
  draft,
  files: [
    {
      draft,
      becomes_executable: null,
      added: 2,
      removed: 0,
      changes: [],
      hunks: [
        { hunk_id: "h1", number: 1, lines: [line(1, "one")] },
        { hunk_id: "h2", number: 2, lines: [line(30, "two")] },
      ],
      findings: [],
      comments: [],
      lines_left: 0,
      is_gone: false,
    },
  ],
  may_be_approved_here: true,
  shows_all: true,
  hunk_count: 2,
};

const sent: { path: string; body: unknown }[] = [];
let answers: unknown[] = [];
let scopes: string[];

beforeEach(() => {
  sent.length = 0;
  scopes = ["review"];
  forgetSession();
  vi.stubGlobal("fetch", async (path: string, init?: RequestInit) => {
    if (path === "/api/session") return Response.json({ scopes });
    if (path === "/api/drafts/drf_1") return Response.json(detail);
    if (path.startsWith("/api/drafts?")) return Response.json({ drafts: [draft], workspaces: [], waiting: 1 });
    if (init?.body) sent.push({ path, body: JSON.parse(String(init.body)) });
    return Response.json(answers.shift());
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function Page() {
  const [choices, setChoices] = useState<Choices>(NO_CHOICES);
  const review = {
    choices,
    hasHunks: true,
    mayEdit: true,
    onHunk: (id: string, choice: "approve" | "reject") =>
      setChoices((before) => ({ ...before, hunks: { ...before.hunks, [id]: choice } })),
    onEdit: (id: string, text: string | undefined) =>
      setChoices((before) => ({ ...before, edits: text === undefined ? {} : { [id]: text } })),
    onCommented: () => {},
  };
  return (
    <>
      {detail.files.map((file) => (
        <FileDiff key={file.draft.draft_id} file={file} review={review} />
      ))}
      <CommentList detail={detail} />
      <SayBar detail={detail} choices={choices} onSaid={() => {}} />
    </>
  );
}

const button = (name: string) => screen.getByRole("button", { name });
const within = (group: string, name: string) => {
  const found = [...screen.getByRole("group", { name: group }).querySelectorAll("button")];
  return found.find((one) => one.textContent === name) as HTMLButtonElement;
};

describe("a review by hunk", () => {
  it("sends the approved hunks, and confirms new findings with their hash", async () => {
    const finding = { rule: "diff.gutted", action: "escalate", path: "Makefile", line: null, message: "gone" };
    answers = [
      { drafts: [draft], undecided: { is_rejected: false, confirm: "2e5017", findings: [finding] } },
      { drafts: [{ ...draft, state: "applied" }], undecided: null },
    ];
    render(<Page />);
    await userEvent.click(within("Hunk 2", "Reject"));
    expect(within("Hunk 2", "Reject").getAttribute("aria-pressed")).toBe("true");
    await userEvent.click(screen.getByRole("button", { name: /Approve 1 of 2 hunks/ }));
    await userEvent.click(button("Approve this version"));
    expect(screen.getByRole("alert").textContent).toContain("diff.gutted");
    await userEvent.click(button("Approve anyway"));
    const body = { seal: "5ea1", reason: "", files: [{ draft_id: "drf_1", hunks: ["h1"] }] };
    expect(sent.map((one) => one.body)).toEqual([body, { ...body, confirm: "2e5017" }]);
  });

  it("does not offer to approve what the gate rejects, nor nothing at all", async () => {
    answers = [{ drafts: [draft], undecided: { is_rejected: true, confirm: "2e5017", findings: [] } }];
    render(<Page />);
    await userEvent.click(within("Hunk 1", "Reject"));
    await userEvent.click(screen.getByRole("button", { name: /Approve 1 of 2 hunks/ }));
    await userEvent.click(button("Approve this version"));
    expect(screen.getByRole("alert").textContent).toContain("The gate rejects the result.");
    expect(screen.queryByRole("button", { name: "Approve anyway" })).toBeNull();
    expect(button("Approve this version").hasAttribute("disabled")).toBe(true);
    await userEvent.click(button("Back"));
    await userEvent.click(within("Hunk 2", "Reject"));
    const approve = screen.getByRole("button", { name: /Approve 0 of 2 hunks/ });
    expect(approve.hasAttribute("disabled")).toBe(true);
  });

  it("sends the reviewer's own content", async () => {
    answers = [
      { seal: "5ea1", content: "one\n" },
      { drafts: [{ ...draft, state: "applied" }], undecided: null },
    ];
    render(<Page />);
    await userEvent.click(button("Edit Makefile"));
    await userEvent.type(await screen.findByLabelText("Your version of Makefile"), "mine");
    await userEvent.click(screen.getByRole("button", { name: /Approve your version of 1 file/ }));
    await userEvent.click(button("Approve this version"));
    expect(sent[0]?.body).toMatchObject({ files: [{ draft_id: "drf_1", content: "one\nmine" }] });
  });

  it("keeps the line ends of a text that a person edits", async () => {
    answers = [
      { seal: "5ea1", content: "one\r\ntwo" },
      { drafts: [{ ...draft, state: "applied" }], undecided: null },
    ];
    render(<Page />);
    await userEvent.click(button("Edit Makefile"));
    await userEvent.type(await screen.findByLabelText("Your version of Makefile"), "{Enter}mine");
    await userEvent.click(screen.getByRole("button", { name: /Approve your version of 1 file/ }));
    await userEvent.click(button("Approve this version"));
    expect(sent[0]?.body).toMatchObject({ files: [{ draft_id: "drf_1", content: "one\r\ntwo\r\nmine" }] });
  });

  it("refuses to edit a text that a field does not show exactly", async () => {
    answers = [{ seal: "5ea1", content: null }];
    render(<Page />);
    await userEvent.click(button("Edit Makefile"));
    expect(await screen.findByText(/hidden characters/)).toBeTruthy();
    expect(screen.queryByLabelText("Your version of Makefile")).toBeNull();
  });

  it("comments on a line of the version shown, and says that there is no comment yet", async () => {
    answers = [{ drafts: [draft], undecided: null }];
    render(<Page />);
    expect(screen.getByText("No comments yet")).toBeTruthy();
    await userEvent.click(button("Comment on hunk 2"));
    await userEvent.type(screen.getByLabelText("Comment for the agent"), "why?");
    await userEvent.click(button("Add comment"));
    const body = { seal: "5ea1", path: "Makefile", side: "new", line: 30, text: "why?" };
    expect(sent).toEqual([{ path: "/api/drafts/drf_1/comments", body }]);
  });
});

describe("the page of a draft", () => {
  const show = () =>
    render(
      <MemoryRouter initialEntries={["/drafts/drf_1"]}>
        <Routes>
          <Route path="/drafts/:draftId" element={<Draft />} />
        </Routes>
      </MemoryRouter>,
    );
  const actions = ["Edit Makefile", "Comment on hunk 1", "Reject", "Send back", "Approve"];
  const offered = () => actions.filter((name) => screen.queryAllByRole("button", { name: new RegExp(`^${name}`) })[0]);

  it("offers a decision to a reviewer", async () => {
    show();
    await screen.findByRole("button", { name: "Edit Makefile" });
    expect(offered()).toEqual(actions);
  });

  it("says who decides to a user without the permission", async () => {
    scopes = ["read"];
    show();
    expect(await screen.findByText("A reviewer decides this.")).toBeTruthy();
    expect(offered()).toEqual([]);
    await userEvent.keyboard("a");
    expect(screen.queryByRole("textbox")).toBeNull();
  });
});
