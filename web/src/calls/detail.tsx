// One call: its numbers, its prompt and its answer.
import { useGet } from "../api/use-get";
import type { CallDetail, CallMessage, ModelCall } from "../gen/api";
import { count, dayAndTime, plain } from "../model/format";
import { ProblemText } from "../ui/code-text";
import { Loading, Note, Tag } from "../ui/parts";
import { costOf, duration } from "./call-format";

export function Detail({ run, call }: { run: string; call: string }) {
  const { data, problem } = useGet<CallDetail>(`/api/runs/${run}/calls/${encodeURIComponent(call)}`);
  if (problem)
    return (
      <Note tone="bad" alert>
        <ProblemText problem={problem} />
      </Note>
    );
  if (!data) return <Loading what="the call" />;
  return (
    <div className="calldetail">
      <Facts call={data.call} />
      {data.hidden_secrets > 0 && (
        <Note>
          {data.hidden_secrets === 1 ? "1 credential is" : `${data.hidden_secrets} credentials are`} hidden in these
          texts.
        </Note>
      )}
      <h3>Answer</h3>
      {data.answer === undefined ? <p className="muted">No answer.</p> : <Text text={data.answer} />}
      {data.truncated && <p className="muted">The answer reached its length limit.</p>}
      <h3>Prompt</h3>
      {data.prompt_problem && <Note tone="neutral">{plain(data.prompt_problem)}</Note>}
      {data.prompt && <Prompt messages={data.prompt.messages} />}
    </div>
  );
}

const TONE = { used: "good", degraded: "warn", rejected: "warn", failed: "bad" } as const;

function Facts({ call }: { call: ModelCall }) {
  const facts: [string, string][] = [
    ["Role", [call.role, call.member].filter(Boolean).join(", ")],
    ["Stage", [call.stage, call.move, call.round && `round ${call.round}`].filter(Boolean).join(", ")],
    ["Model", call.model],
    ["Started", dayAndTime(new Date(call.started_at_ms).toISOString())],
    ["Length", duration(call.length_ms)],
    ["Queued", call.queued_ms === undefined ? "unknown" : duration(call.queued_ms)],
    ["Attempts", String(call.attempts)],
    ["Tokens in", `${count(call.prompt_tokens)} (${count(call.cached_tokens)} cached)`],
    ["Tokens out", count(call.output_tokens)],
    ["Cost", costOf(call)],
  ];
  return (
    <>
      <dl className="callfacts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt className="lab">{name}</dt>
            <dd>{plain(value)}</dd>
          </div>
        ))}
      </dl>
      <p className="callresult">
        <Tag tone={TONE[call.result]}>{call.result}</Tag>
        {call.reasons?.map((reason) => (
          <span key={reason}>{plain(reason)}</span>
        ))}
      </p>
    </>
  );
}

/** The last message is what the call asks; what comes before it is shared with other calls and often long. */
function Prompt({ messages }: { messages: CallMessage[] }) {
  return (
    <ol className="callprompt">
      {messages.map((message, at) => (
        <li key={at}>
          <details open={at === messages.length - 1}>
            <summary>
              {message.role} <span className="muted">{count(message.text.length)} characters</span>
            </summary>
            <Text text={message.text} />
          </details>
        </li>
      ))}
    </ol>
  );
}

function Text({ text }: { text: string }) {
  return (
    <pre className="calltext" dir="auto">
      {plain(text)}
    </pre>
  );
}
