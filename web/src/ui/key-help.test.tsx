import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import KeyHelp from "./key-help";

afterEach(cleanup);

it("names the keys of drafts and of the call log", () => {
  render(<KeyHelp onClose={() => {}} />);
  const keys = (group: string) =>
    [...screen.getByRole("region", { name: group }).querySelectorAll("dt")].map((key) => key.textContent);
  expect(keys("On drafts")).toEqual(["j", "k", "Enter", "a", "r", "c", "Esc"]);
  expect(keys("In the call log")).toEqual(["j", "k", "/", "Esc"]);
});
