import { lazy, type ReactNode, Suspense, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Link, NavLink, useLocation } from "react-router";
import { useGet } from "./api/use-get";
import type { DraftList } from "./gen/api";
import { Icon } from "./ui/icon";
import { useKeys } from "./ui/keys";
import { useTick } from "./ui/use-tick";

const CommandMenu = lazy(() => import("./ui/command"));
const KeyHelp = lazy(() => import("./ui/key-help"));

/** How often the number of drafts is read again. */
const DRAFTS_MS = 30_000;

/** The number of drafts that need review. */
function DraftCount() {
  const { data } = useGet<DraftList>("/api/drafts?state=escalated&limit=1", useTick(DRAFTS_MS));
  if (!data?.waiting) return null;
  return (
    <span className="n">
      {data.waiting}
      <span className="sr"> to review</span>
    </span>
  );
}

export function Logo() {
  return (
    <svg width="24" height="20" viewBox="0 0 24 20" aria-hidden="true">
      <g fill="none" stroke="currentColor" strokeLinecap="round">
        <path d="M7 1v4.2M7 14.8V19M12 1v5.6M12 13.4V19M17 1v7M17 12v7" strokeWidth="2.2" />
        <path d="M1 10h22" strokeWidth="1.5" />
      </g>
    </svg>
  );
}

/** The layout of every page: header, navigation, search. */
export function Shell({ children }: { children: ReactNode }) {
  const [searching, setSearching] = useState(false);
  const [helping, setHelping] = useState(false);
  useKeys({ "?": () => setHelping(true) });
  const main = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    // A new page starts at the top, also for screen readers.
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [pathname]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="top">
        <Link className="logo" to="/" aria-label="Moothall home">
          <Logo />
          Moothall
        </Link>
        <nav className="nav" aria-label="Main">
          <NavLink to="/" end>
            <span>
              New<span className="only-w"> run</span>
            </span>
          </NavLink>
          <NavLink to="/runs" className={pathname === "/compare" ? "on" : undefined}>
            Runs
          </NavLink>
          <NavLink to="/tasks">Tasks</NavLink>
          <NavLink to="/drafts">
            Drafts
            <DraftCount />
          </NavLink>
          <NavLink to="/audit">Audit</NavLink>
          <NavLink to="/settings">Settings</NavLink>
        </nav>
        <span className="sp" />
        <button type="button" className="find" onClick={() => setSearching(true)}>
          <Icon name="search" />
          <span className="ft">Search or jump</span>
          <span className="kbd" aria-hidden="true">
            Ctrl K
          </span>
        </button>
        <button
          type="button"
          className="btn icon ghost only-w"
          aria-label="Keyboard shortcuts"
          onClick={() => setHelping(true)}
        >
          <Icon name="help" />
        </button>
        <button type="button" className="btn icon ghost" aria-label="Switch theme" onClick={switchTheme}>
          <Icon name="theme" />
        </button>
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {children}
      </main>
      {searching && (
        <Suspense>
          <CommandMenu
            onClose={() => setSearching(false)}
            onTheme={switchTheme}
            onHelp={() => {
              setSearching(false);
              setHelping(true);
            }}
          />
        </Suspense>
      )}
      {helping && (
        <Suspense>
          <KeyHelp onClose={() => setHelping(false)} />
        </Suspense>
      )}
    </>
  );
}

function switchTheme(): void {
  const { dataset } = document.documentElement;
  dataset["theme"] = dataset["theme"] === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("moothall-theme", dataset["theme"]);
  } catch {
    // Without storage it applies to this page only.
  }
}
