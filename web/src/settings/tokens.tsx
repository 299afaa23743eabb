import { type FormEvent, useId, useState } from "react";
import { asProblem, type Problem, post } from "../api/client";
import { useGet } from "../api/use-get";
import type { CreateTokenResponse, Scope, SessionInfo, TokenList, TokenSummary } from "../gen/api";
import { ago, dayAndTime, plain } from "../model/format";
import { CopyButton, ProblemText } from "../ui/code-text";
import { Button, Note, Tag } from "../ui/parts";
import { useNow } from "../ui/use-now";

const SCOPES: { value: Scope; name: string }[] = [
  { value: "read", name: "read" },
  { value: "run", name: "run" },
  { value: "review", name: "review" },
  { value: "admin", name: "admin" },
];

/** The default limits of `moothall token create`. */
const LIMITS = { runs_at_once: 4, requests_a_minute: 600 };

/** The access tokens of the team, for administrators. */
export function Tokens() {
  const { data: session } = useGet<SessionInfo>("/api/session");
  if (!session) return null;
  if (!session.scopes.includes("admin"))
    return <p className="muted">Only team administrators can see tokens. Your scopes: {session.scopes.join(", ")}.</p>;
  return <List />;
}

function List() {
  const now = useNow(30_000);
  const { data, problem, reload } = useGet<TokenList>("/api/tokens");
  const [made, setMade] = useState<CreateTokenResponse>();
  const [failed, setFailed] = useState<Problem>();
  const wrong = problem ?? failed;
  const act = async (work: () => Promise<void>) => {
    try {
      await work();
      setFailed(undefined);
      return true;
    } catch (error) {
      setFailed(asProblem(error));
      return false;
    } finally {
      reload();
    }
  };
  const revoke = (token: TokenSummary) => act(async () => void (await post(`/api/tokens/${token.id}/revoke`)));
  const tokens = [...(data?.tokens ?? [])].sort((a, b) => Number(a.state !== "active") - Number(b.state !== "active"));
  return (
    <>
      {wrong && (
        <Note tone="bad" alert>
          <ProblemText problem={wrong} />
        </Note>
      )}
      {made && (
        <Note tone="good" icon="check">
          <b>Copy the token now. It is shown only once.</b>
          <br />
          <code className="secret">{made.token}</code> <CopyButton text={made.token} />{" "}
          <Button size="small" onClick={() => setMade(undefined)}>
            Done
          </Button>
        </Note>
      )}
      {tokens.map((token) => (
        <div className="setrow long" key={token.id}>
          <span>
            {plain(token.label) || <span className="muted">no label</span>}{" "}
            <span className="mono muted">{token.id}</span>
          </span>
          <span className="setval">
            {token.scopes.map((scope) => (
              <Tag key={scope}>{scope}</Tag>
            ))}
            {token.state === "active" ? (
              <RevokeButton onRevoke={() => void revoke(token)} label={plain(token.label) || token.id} />
            ) : (
              <Tag>{token.state}</Tag>
            )}
          </span>
          <span className="keyhint muted">
            Created {ago(token.created_at, now)} ·{" "}
            {token.last_used_at ? `used ${ago(token.last_used_at, now)}` : "never used"}
            {token.expires_at && token.state === "active" && <> · expires {dayAndTime(token.expires_at)}</>}
          </span>
        </div>
      ))}
      <CreateToken
        onCreate={(label, scope, days) =>
          act(async () =>
            setMade(await post<CreateTokenResponse>("/api/tokens", { ...LIMITS, label, scopes: [scope], days })),
          )
        }
      />
    </>
  );
}

/** Asks for confirmation: revoking cannot be undone. */
function RevokeButton({ onRevoke, label }: { onRevoke: () => void; label: string }) {
  const [sure, setSure] = useState(false);
  return (
    <Button
      size="small"
      onClick={() => (sure ? onRevoke() : setSure(true))}
      onBlur={() => setSure(false)}
      aria-label={sure ? `Really revoke ${label}` : `Revoke ${label}`}
    >
      {sure ? "Really revoke" : "Revoke"}
    </Button>
  );
}

function CreateToken({ onCreate }: { onCreate: (label: string, scope: Scope, days: number) => Promise<boolean> }) {
  const labelId = useId();
  const [label, setLabel] = useState("");
  const [scope, setScope] = useState<Scope>("run");
  const [days, setDays] = useState("90");
  const [busy, setBusy] = useState(false);
  const create = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const isMade = await onCreate(label.trim(), scope, Number(days));
    setBusy(false);
    if (isMade) setLabel("");
  };
  return (
    <form className="tokenform" onSubmit={create}>
      <label htmlFor={labelId}>
        <span className="lab">Label</span>
        <input
          id={labelId}
          maxLength={100}
          placeholder="nightly script"
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
      </label>
      <label>
        <span className="lab">Permission</span>
        <select value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
          {SCOPES.map((one) => (
            <option key={one.value} value={one.value}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="lab">Expires</span>
        <select value={days} onChange={(event) => setDays(event.target.value)}>
          <option value="7">in a week</option>
          <option value="30">in 30 days</option>
          <option value="90">in 90 days</option>
          <option value="365">in a year</option>
        </select>
      </label>
      <Button type="submit" disabled={busy || label.trim() === ""}>
        Create token
      </Button>
    </form>
  );
}
