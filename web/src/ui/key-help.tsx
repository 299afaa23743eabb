import { Sheet } from "./dialog";
import { keysAreOn } from "./keys";

const GROUPS: [string, [string[], string][]][] = [
  [
    "Everywhere",
    [
      [["Ctrl", "K"], "Search runs and pages, or run an action"],
      [["?"], "Show this help"],
      [["Esc"], "Close a dialog"],
    ],
  ],
  [
    "On a run",
    [
      [["j"], "Next move"],
      [["k"], "Previous move"],
      [["0", "1", "2", "3", "4"], "Gather, infer, analyze, debate, rank"],
      [["r"], "Results"],
      [["Esc"], "Back to the whole run"],
    ],
  ],
  [
    "On drafts",
    [
      [["j"], "Next draft"],
      [["k"], "Previous draft"],
      [["Enter"], "Open the draft"],
      [["a"], "Approve the open draft"],
      [["r"], "Reject it"],
      [["c"], "Send it back with a comment"],
      [["Esc"], "Back to the list"],
    ],
  ],
  [
    "In the call log",
    [
      [["j"], "Next call"],
      [["k"], "Previous call"],
      [["/"], "Search names, reasons and answers"],
      [["Esc"], "Close the call"],
    ],
  ],
];

/** The keyboard shortcuts, on `?`. */
export default function KeyHelp({ onClose }: { onClose: () => void }) {
  return (
    <Sheet title="Keyboard shortcuts" open onClose={onClose}>
      {!keysAreOn() && <p className="muted">Single-key shortcuts are turned off in Settings.</p>}
      {GROUPS.map(([name, keys]) => (
        <section key={name} className="keygroup" aria-label={name}>
          <h3>{name}</h3>
          <dl>
            {keys.map(([pressed, does]) => (
              <div key={pressed.join(" ") + does}>
                <dt>
                  {pressed.map((key) => (
                    <kbd key={key} className="kbd">
                      {key}
                    </kbd>
                  ))}
                </dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </Sheet>
  );
}
