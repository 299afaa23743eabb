import { Dialog as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { Icon } from "./icon";

/** A panel over the page: on the right, or at the bottom on a phone. */
export function Sheet({
  title,
  open,
  onClose,
  children,
  look = "side",
}: {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  look?: "side" | "centre" | "debate";
}) {
  return (
    <Radix.Root open={open} onOpenChange={(next) => next || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="veil" />
        <Radix.Content className={`sheet ${look}`} aria-describedby={undefined}>
          <header className="sheethead">
            <Radix.Title>{title}</Radix.Title>
            <Radix.Close className="btn icon ghost" aria-label="Close">
              <Icon name="close" />
            </Radix.Close>
          </header>
          <div
            className="sheetbody"
            // A region that scrolls must be reachable by keyboard; a debate scrolls inside.
            tabIndex={look === "debate" ? undefined : 0}
          >
            {children}
          </div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
