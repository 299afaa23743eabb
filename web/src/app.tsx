import { Component, lazy, type ReactNode, Suspense, useEffect, useState } from "react";
import { BrowserRouter, Route, Routes, useLocation } from "react-router";
import { Shell } from "./shell";
import { Announcer } from "./ui/announce";
import { Button, Empty, Loading } from "./ui/parts";
import { Toasts } from "./ui/toast";

const Home = lazy(() => import("./routes/home"));
const Runs = lazy(() => import("./routes/runs"));
const Run = lazy(() => import("./routes/run"));
const Memo = lazy(() => import("./routes/memo"));
const Results = lazy(() => import("./routes/results"));
const Calls = lazy(() => import("./routes/calls"));
const Compare = lazy(() => import("./routes/compare"));
const Tasks = lazy(() => import("./routes/tasks"));
const Drafts = lazy(() => import("./routes/drafts"));
const Draft = lazy(() => import("./routes/draft"));
const Audit = lazy(() => import("./routes/audit"));
const Review = lazy(() => import("./routes/review"));
const Settings = lazy(() => import("./routes/settings"));

export function App() {
  // Outside of the shell, which asks for a session: the holder of a review link need not be signed in.
  if (location.pathname === "/review")
    return (
      <main>
        <Broken>
          <Suspense fallback={<Loading what="the page" />}>
            <Review />
          </Suspense>
        </Broken>
      </main>
    );
  return (
    <BrowserRouter>
      <Announcer>
        <Toasts>
          <Shell>
            {/* Around what is remounted with the address: a new boundary would show its fallback for at least 300 ms. */}
            <Suspense fallback={<Loading what="the page" />}>
              <Guarded>
                <Routes>
                  <Route path="/" element={<Home />} />
                  <Route path="/runs" element={<Runs />} />
                  <Route path="/runs/:runId" element={<Run />} />
                  <Route path="/runs/:runId/memo" element={<Memo />} />
                  <Route path="/runs/:runId/results" element={<Results />} />
                  <Route path="/runs/:runId/calls" element={<Calls />} />
                  <Route path="/compare" element={<Compare />} />
                  <Route path="/tasks" element={<Tasks />} />
                  <Route path="/drafts" element={<Drafts />} />
                  <Route path="/drafts/:draftId" element={<Draft />} />
                  <Route path="/audit" element={<Audit />} />
                  <Route path="/settings" element={<Settings />} />
                  <Route path="*" element={<Nowhere />} />
                </Routes>
              </Guarded>
            </Suspense>
          </Shell>
        </Toasts>
      </Announcer>
    </BrowserRouter>
  );
}

function Nowhere() {
  return (
    <Empty page title="Page not found" action={<a href="/runs">All runs</a>}>
      Check the address: part of it may be missing.
    </Empty>
  );
}

/** A page that failed is tried again when the address changes. */
function Guarded({ children }: { children: ReactNode }) {
  const { pathname } = useLocation();
  return <Broken key={pathname}>{children}</Broken>;
}

/** Shown if rendering fails, or if a part of the page could not be loaded. */
class Broken extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    if (/import|module|fetch/i.test(error.message)) return <NotLoaded />;
    return (
      <Empty page title="This page failed to load" action={<Reload />}>
        Your run is not affected. Error: {error.message}
      </Empty>
    );
  }
}

/** A part of the page is missing: the server is away, or it was updated meanwhile. Only asking it tells which. */
function NotLoaded() {
  const [isThere, setIsThere] = useState<boolean>();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    let wasAway = false;
    const ask = async () => {
      const answers = await fetch("/healthz", { cache: "no-store" }).then(
        (response) => response.ok,
        () => false,
      );
      // A server that is back has the missing part.
      if (answers && wasAway) return location.reload();
      wasAway ||= !answers;
      setIsThere(answers);
      if (!answers) timer = setTimeout(ask, 2000);
    };
    void ask();
    return () => clearTimeout(timer);
  }, []);
  if (isThere === undefined) return <Loading what="the page" />;
  return isThere ? (
    <Empty page title="A new version is available" action={<Reload />}>
      The server was updated while this page was open. Reload to continue; nothing is lost.
    </Empty>
  ) : (
    <Empty page title="Can't reach the server" action={<Reload />}>
      Check that <code>moothall serve</code> is running. This page reconnects by itself.
    </Empty>
  );
}

function Reload() {
  return (
    <Button look="primary" onClick={() => location.reload()}>
      Reload
    </Button>
  );
}
