import { Component, lazy, type ReactNode, Suspense } from "react";
import { BrowserRouter, Route, Routes } from "react-router";
import { Shell } from "./shell";
import { Announcer } from "./ui/announce";
import { Button, Empty, Loading } from "./ui/parts";
import { Toasts } from "./ui/toast";

const Home = lazy(() => import("./routes/home"));
const Run = lazy(() => import("./routes/run"));
const Results = lazy(() => import("./routes/results"));
const Calls = lazy(() => import("./routes/calls"));
const Compare = lazy(() => import("./routes/compare"));
const Tasks = lazy(() => import("./routes/tasks"));
const Drafts = lazy(() => import("./routes/drafts"));
const Draft = lazy(() => import("./routes/draft"));
const Audit = lazy(() => import("./routes/audit"));
const Settings = lazy(() => import("./routes/settings"));

export function App() {
  return (
    <BrowserRouter>
      <Announcer>
        <Toasts>
          <Shell>
            <Broken>
              <Suspense fallback={<Loading what="the page" />}>
                <Routes>
                  <Route path="/" element={<Home />} />
                  <Route path="/runs/:runId" element={<Run />} />
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
              </Suspense>
            </Broken>
          </Shell>
        </Toasts>
      </Announcer>
    </BrowserRouter>
  );
}

function Nowhere() {
  return (
    <Empty page title="Page not found" action={<a href="/">All runs</a>}>
      Check the address: part of it may be missing.
    </Empty>
  );
}

/** Shown if rendering fails, or if a chunk is missing after an update. */
class Broken extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    const isOld = /import|module|fetch/i.test(error.message);
    return (
      <Empty
        page
        title={isOld ? "A new version is available" : "This page failed to load"}
        action={
          <Button look="primary" onClick={() => location.reload()}>
            Reload
          </Button>
        }
      >
        {isOld
          ? "The server was updated while this page was open. Reload to continue; nothing is lost."
          : `Your run is not affected. Error: ${error.message}`}
      </Empty>
    );
  }
}
