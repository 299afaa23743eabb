import { Dialog } from "radix-ui";
import { useId, useMemo, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { asProblem, post } from "../api/client";
import { useMay } from "../api/session";
import { useGet } from "../api/use-get";
import type { RunList } from "../gen/api";
import { useDelayed } from "../home/use-delayed";
import { ago, plain } from "../model/format";
import { LAYERS } from "../model/select";
import { Icon } from "./icon";
import { useToast } from "./toast";

interface Item {
  name: string;
  detail: string;
  to?: string;
  act?: () => void;
}

const PAGES: Item[] = [
  { name: "New run", detail: "start", to: "/" },
  { name: "All runs", detail: "search, compare, delete", to: "/runs" },
  { name: "Compare two runs", detail: "", to: "/compare" },
  { name: "Tasks", detail: "programs", to: "/tasks" },
  { name: "Drafts", detail: "review agent edits", to: "/drafts" },
  { name: "Audit", detail: "audit log of drafts", to: "/audit" },
  { name: "Settings", detail: "keys, limits, keyboard", to: "/settings" },
];

/** Search: runs, pages, stages of the open run, and actions. */
export default function CommandMenu({
  onClose,
  onTheme,
  onHelp,
}: {
  onClose: () => void;
  onTheme: () => void;
  onHelp: () => void;
}) {
  const toast = useToast();
  const mayRun = useMay("run") !== false;
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const listId = useId();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const asked = useDelayed(query.trim(), 200);
  const { data } = useGet<RunList>(`/api/runs?limit=20${asked ? `&q=${encodeURIComponent(asked)}` : ""}`);
  // Until the next answer, what fits of the last one stays: Enter would do nothing on an empty list.
  const [found, setFound] = useState<{ asked: string; list: RunList }>();
  if (data && data !== found?.list) setFound({ asked, list: data });
  const items = useMemo(() => {
    const run = /^\/runs\/([^/]+)/.exec(pathname)?.[1];
    const here: Item[] = run
      ? [
          ...LAYERS.map((name, layer) => ({
            name,
            detail: "stage of this run",
            to: `/runs/${run}?layer=${layer}`,
          })),
          { name: "Results", detail: "of this run", to: `/runs/${run}/results` },
          { name: "Model calls", detail: "of this run", to: `/runs/${run}/calls` },
          { name: "Memo", detail: "of this run", to: `/runs/${run}/memo` },
          ...(mayRun
            ? (["pause", "resume"] as const).map((what) => ({
                name: what === "pause" ? "Pause this run" : "Resume this run",
                detail: "action",
                act: () => void control(run, what),
              }))
            : []),
        ]
      : [];
    const control = async (id: string, what: "pause" | "resume") => {
      try {
        await post(`/api/runs/${id}/${what}`);
        toast({
          text: what === "pause" ? "Pausing: calls in progress will finish first." : "Resumed.",
          tone: "neutral",
        });
      } catch (error) {
        toast({ text: asProblem(error).message, tone: "bad" });
      }
    };
    const actions: Item[] = [
      { name: "Copy link to this page", detail: "action", act: () => void copyLink() },
      { name: "Switch theme", detail: "action", act: onTheme },
      { name: "Keyboard shortcuts", detail: "help", act: onHelp },
    ];
    const copyLink = () =>
      navigator.clipboard.writeText(location.href).then(
        () => toast({ text: "Link copied.", tone: "neutral" }),
        () => toast({ text: "The browser blocked copying.", tone: "bad" }),
      );
    const runs = (found?.list.runs ?? []).map((one) => ({
      name: plain(one.title),
      detail: `${one.state}, ${ago(one.created_at, Date.now())}`,
      to: `/runs/${one.run_id}`,
    }));
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item: Item) =>
      words.every((word) => `${item.name} ${item.detail} ${item.to ?? ""}`.toLowerCase().includes(word));
    // The server also searches what is not shown here.
    const fitting = found?.asked === query.trim() ? runs : runs.filter(fits);
    return [...[...here, ...PAGES, ...actions].filter(fits), ...fitting].slice(0, 14);
  }, [found, pathname, query, mayRun, toast, onTheme, onHelp]);
  const chosen = Math.min(at, items.length - 1);
  const go = (item: Item | undefined) => {
    if (!item) return;
    onClose();
    if (item.to) navigate(item.to);
    item.act?.();
  };
  return (
    <Dialog.Root open onOpenChange={(open) => open || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="veil" />
        <Dialog.Content className="command" aria-describedby={undefined}>
          <Dialog.Title className="sr">Search or jump</Dialog.Title>
          <div className="commandrow">
            <Icon name="search" />
            <input
              role="combobox"
              aria-expanded="true"
              aria-controls={listId}
              aria-activedescendant={items[chosen] ? `${listId}-${chosen}` : undefined}
              aria-label="Search runs and pages"
              placeholder="A run, a page, a stage, an action"
              value={query}
              onChange={(event) => {
                setQuery(event.target.value);
                setAt(0);
              }}
              onKeyDown={(event) => {
                if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, items.length - 1));
                else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
                else if (event.key === "Enter") go(items[chosen]);
                else return;
                event.preventDefault();
              }}
            />
          </div>
          <div id={listId} role="listbox" aria-label="Found" className="commandlist">
            {items.map((item, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: keys are the field's, as a combobox has it
              <div
                key={(item.to ?? "") + item.name}
                id={`${listId}-${i}`}
                role="option"
                tabIndex={-1}
                aria-selected={i === chosen}
                onClick={() => go(item)}
              >
                <span>{item.name}</span>
                <span className="muted">{item.detail}</span>
              </div>
            ))}
          </div>
          {items.length === 0 && <p className="commandnone muted">No results</p>}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
