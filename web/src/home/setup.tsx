import type { ReactNode } from "react";
import { useGet } from "../api/use-get";
import type { ServerSettings } from "../gen/api";
import { Command } from "../ui/code-text";
import { Icon } from "../ui/icon";

/** Three steps for a machine that has not run anything yet. */
export function Setup() {
  const { data } = useGet<ServerSettings>("/api/settings");
  if (!data) return null;
  const isDemo = data.model === "demo";
  const provider = data.keys.find((row) => row.provider === data.model?.split("/")[0]);
  const hasModel = data.model !== null && !(provider?.needed && !provider.present);
  return (
    <section className="setup panel" aria-label="Set up">
      <h2>Three steps to your first run</h2>
      <ol>
        <Step done={hasModel} title="Choose a model">
          {hasModel ? (
            isDemo ? (
              "The demo model is active: scripted answers, no key, no cost."
            ) : (
              <>
                <code>{data.model}</code> is ready.
              </>
            )
          ) : (
            <>
              Set a model and its API key: <Command text="moothall init" />
            </>
          )}
        </Step>
        <Step done={data.contact || data.offline} title="Add a contact for SEC filings">
          {data.contact || data.offline ? (
            "Filings of US-listed companies can be read."
          ) : (
            <>
              The SEC requires a name and email. HLXI, a fictional company, works without:{" "}
              <Command text="moothall init" />
            </>
          )}
        </Step>
        <Step done={data.images.includes("debate")} title="Install the sandboxes">
          {data.images.includes("debate") ? (
            "Debates run in microVMs."
          ) : (
            <>
              Optional. Without them, debates run with weaker isolation, which is always reported.{" "}
              <Command text="moothall image build" />
            </>
          )}
        </Step>
      </ol>
    </section>
  );
}

function Step({ done, title, children }: { done: boolean; title: string; children: ReactNode }) {
  return (
    <li className={done ? "done" : undefined}>
      <Icon name={done ? "check" : "wait"} />
      <div>
        <b>
          {title}
          <span className="sr">{done ? ", done" : ", to do"}</span>
        </b>
        <p>{children}</p>
      </div>
    </li>
  );
}
