import type { IsolationClass } from "../gen/run";

/** A plain description of an isolation class. */
const WORDS: Record<IsolationClass, string> = {
  "hardware-vm": "in a microVM (hardware-vm)",
  "user-kernel": "in a sandbox with its own kernel (user-kernel)",
  "emulated-vm": "in an emulated microVM (emulated-vm)",
  "shared-kernel": "in a container (shared-kernel)",
  none: "without a sandbox",
};

export function isolationWords(isolation: IsolationClass): string {
  return WORDS[isolation];
}

/** Why isolation is weaker than requested; reasons start with the kind of failure. */
export function isolationReason(reason: string): string {
  if (reason.startsWith("image:")) return "Sandbox not used: its image is missing or has changed.";
  return `${reason}.`;
}

/** What to do about a reason for weaker isolation; reasons start with the kind of failure. */
export function isolationFix(reason: string): string {
  if (reason.startsWith("no-engine:")) return "To use microVMs, run `sudo apt install qemu-system-x86` on the server.";
  if (reason.startsWith("image:")) return "To use microVMs, run `moothall image build debate` on the server.";
  return "";
}
