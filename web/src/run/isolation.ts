import type { IsolationClass } from "../gen/run";

/** A plain description of an isolation class. */
const WORDS: Record<IsolationClass, string> = {
  "hardware-vm": "in a microVM (hardware-vm)",
  "user-kernel": "in a sandbox with its own kernel (user-kernel)",
  "emulated-vm": "in an emulated microVM (emulated-vm)",
  "shared-kernel": "in a container (shared-kernel)",
  none: "without a sandbox (none)",
};

export function isolationWords(isolation: IsolationClass): string {
  return WORDS[isolation];
}
