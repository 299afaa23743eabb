import { Dialog } from "radix-ui";
import { useId, useMemo, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { useGet } from "../api/use-get";
import type { RunList } from "../gen/api";
import { ago, plain } from "../model/format";
import { Icon } from "./icon";

interface Item {
  name: string;
  detail: string;
  to: string;
}

const PAGES: Item[] = [
  { name: "All runs", detail: "start", to: "/" },
  { name: "Compare two runs", detail: "", to: "/compare" },
  { name: "Tasks", detail: "programs", to: "/tasks" },
  { name: "Drafts", detail: "review agent edits", to: "/drafts" },
  { name: "Audit", detail: "audit log of drafts", to: "/audit" },
  { name: "Settings", detail: "keys, limits, keyboard", to: "/settings" },
];

/** Search: runs, pages, and stages of the open run. */
export default function CommandMenu({ onClose }: { onClose: () => void }) {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const listId = useId();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const { data } = useGet<RunList>("/api/runs?limit=50");
  const items = useMemo(() => {
    const run = /^\/runs\/([^/]+)/.exec(pathname)?.[1];
    const here: Item[] = run
      ? [
          ...["Gather", "Infer", "Analyse", "Debate", "Rank"].map((name, layer) => ({
            name,
            detail: "stage of this run",
            to: `/runs/${run}?layer=${layer}`,
          })),
          { name: "Results", detail: "of this run", to: `/runs/${run}/results` },
          { name: "Model calls", detail: "of this run", to: `/runs/${run}/calls` },
        ]
      : [];
    const runs = (data?.runs ?? []).map((one) => ({
      name: plain(one.title),
      detail: `${one.state}, ${ago(one.created_at, Date.now())}`,
      to: `/runs/${one.run_id}`,
    }));
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item: Item) =>
      words.every((word) => `${item.name} ${item.detail} ${item.to}`.toLowerCase().includes(word));
    return [...here, ...PAGES, ...runs].filter(fits).slice(0, 12);
  }, [data, pathname, query]);
  const chosen = Math.min(at, items.length - 1);
  const go = (item: Item | undefined) => {
    if (!item) return;
    onClose();
    navigate(item.to);
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
              placeholder="A run, a page, a layer"
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
                key={item.to + item.name}
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
          {items.length === 0 && <p className="commandnone muted">No matches.</p>}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
