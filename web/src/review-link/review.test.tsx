import { cleanup, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ReviewLinkDetail } from "../gen/api";
import Review from "../routes/review";

const sent: { path: string; init: RequestInit }[] = [];
let answers: (() => Response)[];

const LINK = {
  notice: "4f2a91c3",
  expires_at: "2026-11-19T07:00:00Z",
  detail: {
    draft: {
      draft_id: "drf_1",
      path: "Makefile",
      owner: "worker ada/agent",
      task_id: "t1",
      summary: "Build everything",
      seal: "6a7e40f27d20",
    },
    files: [],
    may_be_approved_here: true,
    shows_all: true,
  },
} as unknown as ReviewLinkDetail;

beforeEach(() => {
  sent.length = 0;
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    sent.push({ path, init });
    return (answers.shift() ?? (() => Response.error()))();
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  history.replaceState(null, "", "/");
});

it("sends the token only in bodies, without cookies, and removes it from the address", async () => {
  history.replaceState(null, "", "/review#secret.token");
  answers = [() => Response.json(LINK), () => Response.json({ drafts: [{ state: "applied" }] })];
  render(<Review />);
  await screen.findByText("Build everything");
  expect(location.href).not.toContain("secret");
  // Opening the page only reads.
  expect(sent.map((one) => one.path)).toEqual(["/api/review-link/show"]);
  await userEvent.click(screen.getByRole("button", { name: "Approve" }));
  await userEvent.click(screen.getByRole("button", { name: "Approve this version" }));
  await screen.findByText("Your decision is recorded.");
  expect(sent.map((one) => one.path)).toEqual(["/api/review-link/show", "/api/review-link/decide"]);
  for (const { path, init } of sent) {
    expect(path).not.toContain("secret");
    expect(init.credentials).toBe("omit");
    expect(JSON.parse(String(init.body))).toMatchObject({ token: "secret.token" });
  }
});

it("explains a link that was used", async () => {
  history.replaceState(null, "", "/review#secret.token");
  const problem = { code: "link-used", detail: "this review link has been used", hint: "sign in" };
  answers = [() => Response.json(problem, { status: 410 })];
  render(<Review />);
  await screen.findByText("This link cannot be used");
  expect(screen.getByText(/has been used/)).toBeTruthy();
});

it("asks for the whole link if the token is missing", () => {
  history.replaceState(null, "", "/review");
  answers = [];
  render(<Review />);
  expect(screen.getByText("This link is incomplete")).toBeTruthy();
});
