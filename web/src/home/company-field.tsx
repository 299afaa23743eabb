import clsx from "clsx";
import { type RefObject, useId, useState } from "react";
import type { TickerRow } from "../gen/api";
import { plain } from "../model/format";
import { Icon } from "../ui/icon";

const SHOWN = 8;

/** The company's field: a ticker, or a name that is searched for. */
export function CompanyField({
  id,
  describedBy,
  field,
  value,
  found,
  isKnown,
  onChange,
}: {
  id: string;
  describedBy: string;
  field: RefObject<HTMLInputElement | null>;
  value: string;
  found: TickerRow[] | undefined;
  /** Whether the value is the ticker of a company. */
  isKnown: boolean;
  onChange: (value: string) => void;
}) {
  const listId = useId();
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const options = (found ?? []).slice(0, SHOWN);
  const shown = open && options.length > 0 && !(isKnown && options.length === 1);
  const chosen = Math.min(at, options.length - 1);
  const choose = (row: TickerRow | undefined) => {
    if (!row) return;
    onChange(row.ticker);
    setOpen(false);
    setAt(-1);
  };
  return (
    <div className="companyfield">
      <Icon name="search" />
      <input
        id={id}
        ref={field}
        className={clsx(/\s/.test(value) && "byname")}
        role="combobox"
        aria-expanded={shown}
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={shown && chosen >= 0 ? `${listId}-${chosen}` : undefined}
        aria-describedby={describedBy}
        value={value}
        maxLength={80}
        autoComplete="off"
        spellCheck={false}
        placeholder="AAPL or Apple"
        onChange={(event) => {
          // Short words may be tickers, which are in upper case.
          const text = event.target.value;
          onChange(/^[\w.-]{1,12}$/.test(text) ? text.toUpperCase() : text);
          setOpen(true);
          setAt(-1);
        }}
        onFocus={(event) => event.target.select()}
        onBlur={() => setOpen(false)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            setOpen(true);
            setAt(Math.min(chosen + 1, options.length - 1));
          } else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, -1));
          else if (event.key === "Enter" && shown && chosen >= 0) choose(options[chosen]);
          else if (event.key === "Escape" && shown) setOpen(false);
          else return;
          event.preventDefault();
        }}
      />
      <div id={listId} role="listbox" aria-label="Companies" className="companylist" hidden={!shown}>
        {options.map((row, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are the field's, as a combobox has it
          <div
            key={row.ticker}
            id={`${listId}-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            // Before the field loses its focus, which closes the list.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => choose(row)}
          >
            <span className="mono">{row.ticker}</span>
            <span>{plain(row.name)}</span>
          </div>
        ))}
      </div>
    </div>
  );
}
