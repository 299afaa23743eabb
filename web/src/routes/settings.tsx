import { type ReactNode, useEffect, useState } from "react";
import { useGet } from "../api/use-get";
import type { ServerSettings } from "../gen/api";
import { usd } from "../model/format";
import { Doctor } from "../settings/doctor";
import { NotifyTargets } from "../settings/notify-targets";
import { Row } from "../settings/row";
import { Tokens } from "../settings/tokens";
import { CodeText } from "../ui/code-text";
import { keysAreOn, switchKeys } from "../ui/keys";
import { Loading, Note, Segmented, Tag } from "../ui/parts";

/** The server's settings, read-only. API keys are named but never shown. */
export default function Settings() {
  const { data, problem } = useGet<ServerSettings>("/api/settings");
  useEffect(() => {
    document.title = "Settings · Moothall";
  }, []);
  return (
    <div className="res narrowpage fade">
      <h1 className="pagetitle">Settings</h1>
      {problem && (
        <Note tone="bad" alert>
          <b>
            <CodeText text={problem.message} />
          </b>{" "}
          {problem.hint && <CodeText text={problem.hint} />}
        </Note>
      )}
      {!data && !problem && <Loading what="settings" />}
      {data && (
        <>
          <Group title="Model" hint="Chosen when the server starts: --model, or the configuration file.">
            <Row name="Model">
              {data.model ? <span className="mono">{data.model}</span> : <Tag tone="warn">not configured</Tag>}
            </Row>
            {data.model_problem && (
              <Note>
                <CodeText text={data.model_problem} />
              </Note>
            )}
            {data.pace_ms > 0 && (
              <Row name="Demo speed">
                <span className="mono">{data.pace_ms} ms an answer</span>
              </Row>
            )}
            <Row name="Version">
              <span className="mono">{data.version}</span>
            </Row>
          </Group>
          <Group title="Keys" hint="Read on the server. A key is never sent to a browser.">
            {data.keys.map((key) => (
              <Row
                key={key.provider}
                name={key.provider}
                below={key.needed && !key.present && <SetKey provider={key.provider} />}
              >
                {key.present ? (
                  <Tag tone="good" icon="check">
                    present
                  </Tag>
                ) : (
                  <Tag>{key.needed ? "not set" : "not needed"}</Tag>
                )}
              </Row>
            ))}
          </Group>
          <Group
            title="Limits and isolation"
            hint="A run stops at its limit, and isolation is never weakened without notice."
          >
            <Row name="Spend limit per run">
              <span className="mono">
                {data.budget_micro_usd === null ? "by estimate" : usd(data.budget_micro_usd)}
              </span>
            </Row>
            <Row name="Isolation">
              <span className="mono">{data.isolation}</span>
            </Row>
            <Row name="Sandbox images">
              {data.images.length > 0 ? (
                <span className="mono">{data.images.join(", ")}</span>
              ) : (
                <>
                  <Tag tone="warn">none built</Tag> <code>moothall image build</code>
                </>
              )}
            </Row>
          </Group>
          <Group title="This machine" hint="Which sandboxes work here. The test tries to break out of each one.">
            <Doctor />
          </Group>
          <Group
            title="Evidence"
            hint="The SEC requires a contact: a name and an e-mail address, set in the configuration."
          >
            <Row name="Contact for the SEC">
              {data.contact ? (
                <Tag tone="good" icon="check">
                  set
                </Tag>
              ) : (
                <Tag tone="warn">not set</Tag>
              )}
            </Row>
            <Row name="Filings">
              <span>{data.offline ? "built-in copies" : "downloaded from the SEC when needed"}</span>
            </Row>
          </Group>
          <Group
            title="Notices"
            hint="Receivers of notices about runs and drafts. Addresses and secrets are never shown."
          >
            <NotifyTargets targets={data.notify_targets ?? []} />
          </Group>
          <Group title="Access tokens" hint="For scripts and other people. A token is shown once and stored as a hash.">
            <Tokens />
          </Group>
        </>
      )}
      <Group title="This browser" hint="Stored in this browser, not on the server.">
        <Row name="Theme">
          <ThemeChoice />
        </Row>
        <Row name="Single-key shortcuts">
          <KeyChoice />
        </Row>
        <dl className="keylist">
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <span className="kbd">{key}</span>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </Group>
    </div>
  );
}

const KEYS = [
  ["j k", "next and previous move or draft"],
  ["0 – 4", "zoom into a stage"],
  ["Esc", "zoom out"],
  ["r", "results of the run"],
  ["a r c", "approve, reject, send back a draft"],
  ["Ctrl K", "search or jump; always on"],
] as const;

function Group({ title, hint, children }: { title: string; hint: string; children: ReactNode }) {
  return (
    <section className="panel group" aria-label={title}>
      <h2>{title}</h2>
      <p className="muted">{hint}</p>
      {children}
    </section>
  );
}

type Theme = "system" | "light" | "dark";

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(() => {
    const kept = stored("moothall-theme");
    return kept === "light" || kept === "dark" ? kept : "system";
  });
  const choose = (next: Theme) => {
    setTheme(next);
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    document.documentElement.dataset["theme"] = next === "system" ? system : next;
    try {
      if (next === "system") localStorage.removeItem("moothall-theme");
      else localStorage.setItem("moothall-theme", next);
    } catch {
      // Without storage it applies to this page only.
    }
  };
  return (
    <Segmented
      label="Theme"
      options={[
        { value: "system", name: "System" },
        { value: "light", name: "Light" },
        { value: "dark", name: "Dark" },
      ]}
      value={theme}
      onChange={choose}
    />
  );
}

function KeyChoice() {
  const [on, setOn] = useState(keysAreOn);
  return (
    <Segmented
      label="Single-key shortcuts"
      options={[
        { value: "on", name: "On" },
        { value: "off", name: "Off" },
      ]}
      value={on ? "on" : "off"}
      onChange={(next) => {
        switchKeys(next === "on");
        setOn(next === "on");
      }}
    />
  );
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** The command that stores a missing key. */
function SetKey({ provider }: { provider: string }) {
  return (
    <>
      Run <code>moothall key set {provider}</code> on the server.
    </>
  );
}
