// What is missing before a run can start, known before anybody asks for it.
import type { ConsultSource, ServerSettings } from "../gen/api";

export interface Blocker {
  reason: string;
  /** A command for the server's terminal that solves it. */
  command?: string;
}

export const READ_ONLY: Blocker = { reason: "You have read-only access. Ask an admin for run access." };

/** The key of a model's provider, or a missing model. */
function modelBlocker(settings: ServerSettings, model: string): Blocker | undefined {
  const name = model === "" ? settings.model : model;
  if (name === null)
    return {
      reason: "No model is configured. Set a model and an API key, or restart the server with `--model demo`.",
      command: "moothall init",
    };
  const provider = name.split("/")[0];
  const key = settings.keys.find((row) => row.provider === provider);
  if (!key?.needed || key.present) return undefined;
  return {
    reason: `No API key for ${key.provider}.${key.hint ? ` Hint: ${key.hint}.` : ""}`,
    command: "moothall init",
  };
}

/** Why a consultation cannot start; nothing if it can, or if that is not known yet. */
export function consultBlocker(
  settings: ServerSettings | undefined,
  may: boolean | undefined,
  request: { model: string; source: ConsultSource; fictional: boolean | undefined },
): Blocker | undefined {
  if (may === false) return READ_ONLY;
  if (!settings) return undefined;
  const model = modelBlocker(settings, request.model);
  if (model) return model;
  if (request.source === "filings" && request.fictional === false && !settings.contact && !settings.offline)
    return {
      reason: "The SEC requires a contact name and email. Set it in the configuration file.",
      command: "moothall init",
    };
  return undefined;
}

/** Why a program cannot start. */
export function programBlocker(
  settings: ServerSettings | undefined,
  may: boolean | undefined,
  request: { model: string; image: string },
): Blocker | undefined {
  if (may === false) return READ_ONLY;
  if (!settings) return undefined;
  const model = modelBlocker(settings, request.model);
  if (model) return model;
  const image = request.image || "python";
  if (settings.images.includes(image)) return undefined;
  const name = image === "python" ? "Python" : image;
  return {
    reason: `The ${name} sandbox isn't installed. Run this command on the server, then try again.`,
    command: `moothall image build ${image}`,
  };
}
