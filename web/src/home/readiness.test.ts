import { describe, expect, it } from "vitest";
import type { ServerSettings } from "../gen/api";
import { consultBlocker, programBlocker, READ_ONLY } from "./readiness";

const settings: ServerSettings = {
  version: "0",
  model: "anthropic/x",
  model_problem: null,
  keys: [{ provider: "anthropic", needed: true, present: false, hint: "set `ANTHROPIC_API_KEY`", default_model: null }],
  contact: false,
  offline: false,
  pace_ms: 0,
  isolation: "auto",
  images: [],
  budget_micro_usd: null,
  notify_targets: [],
};
const request = { model: "", source: "filings" as const, fictional: true };
const demo = { ...settings, model: "demo" };

describe("before a run starts", () => {
  it("a missing scope, model or key is named", () => {
    expect(consultBlocker(settings, false, request)).toBe(READ_ONLY);
    expect(consultBlocker({ ...settings, model: null }, true, request)?.reason).toContain("No model is configured");
    expect(consultBlocker(settings, true, request)?.reason).toContain("No API key for anthropic");
    expect(consultBlocker(demo, true, request)).toBeUndefined();
    expect(consultBlocker(settings, true, { ...request, model: "demo" })).toBeUndefined();
  });

  it("a contact is needed only for filings of real companies", () => {
    const real = { ...request, fictional: false };
    expect(consultBlocker(demo, true, real)?.reason).toContain("SEC requires a contact");
    expect(consultBlocker({ ...demo, contact: true }, true, real)).toBeUndefined();
    expect(consultBlocker(demo, true, { ...real, source: "synthetic" })).toBeUndefined();
  });

  it("a missing sandbox is named with its command", () => {
    expect(programBlocker(demo, true, { model: "", image: "" })?.command).toBe("moothall image build python");
    expect(programBlocker({ ...demo, images: ["python"] }, true, { model: "", image: "" })).toBeUndefined();
  });

  it("nothing is refused while the settings are being loaded", () => {
    expect(consultBlocker(undefined, undefined, request)).toBeUndefined();
  });
});
