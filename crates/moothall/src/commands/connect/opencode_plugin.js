// Written by `moothall connect opencode --hook`. Remove it with `moothall connect opencode --remove`.
// Asks the gate before opencode edits a file. This is early advice: shell commands are not checked.
import { spawnSync } from "node:child_process";

const PROGRAM = "PROGRAM";
const TOOLS = ["write", "edit", "patch", "multiedit"];

export const Moothall = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    if (!TOOLS.includes(input.tool)) return;
    const call = JSON.stringify({ cwd: directory, tool_name: input.tool, tool_input: output.args });
    const checked = spawnSync(PROGRAM, ["hook", "opencode"], { input: call, encoding: "utf8", timeout: 30000 });
    if (checked.status !== 0) throw new Error((checked.stderr || `moothall failed: ${checked.error}`).trim());
  },
});
