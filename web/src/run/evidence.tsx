// What a citation opens: the fact with its filing, or the passage; and what "read the proposal" opens.
import { useSearchParams } from "react-router";
import type { Fact, Facts } from "../api/facts";
import { useGet } from "../api/use-get";
import type { RunView } from "../gen/run";
import { isoDay, plain } from "../model/format";
import { isSynthetic } from "../model/select";
import { AgentText } from "../ui/agent-text";
import { Cite } from "../ui/cite";
import { Sheet } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Button, Empty, Loading, Note } from "../ui/parts";
import { factValue } from "./fact-value";

/** The sheets of a run's pages. Which one is open stands in the address. */
export function EvidenceSheets({ view }: { view: RunView }) {
  const [params, setParams] = useSearchParams();
  const fact = params.get("fact");
  const doc = params.get("doc");
  const close = (name: string) =>
    setParams(
      (before) => {
        before.delete(name);
        return before;
      },
      { preventScrollReset: true },
    );
  return (
    <>
      <Sheet title={doc ? docTitle(doc) : "Document"} open={doc !== null} onClose={() => close("doc")}>
        {doc !== null && <DocumentText view={view} name={doc} />}
      </Sheet>
      <Sheet title={fact ?? "Fact"} open={fact !== null} onClose={() => close("fact")}>
        {fact !== null && <FactOf view={view} id={fact} />}
      </Sheet>
    </>
  );
}

function docTitle(name: string): string {
  if (name === "F1.md") return "F1, what the figures mean";
  if (name === "F2.md") return "F2, where it is heading";
  return `Proposal ${name.replace(/\.md$/, "")}`;
}

function DocumentText({ view, name }: { view: RunView; name: string }) {
  const { data, problem, reload } = useGet<string>(
    `/api/runs/${view.about.run_id}/artifacts/${encodeURIComponent(name)}`,
    0,
    "text",
  );
  if (problem)
    return (
      <Empty title="It is not here" action={<Button onClick={reload}>Try again</Button>}>
        {problem.message}
      </Empty>
    );
  if (data === undefined) return <Loading what={name} />;
  return <AgentText text={data} big />;
}

function FactOf({ view, id }: { view: RunView; id: string }) {
  const { consult } = view;
  const { data, problem } = useGet<Facts>(
    consult && !isSynthetic(consult) ? `/api/facts/${encodeURIComponent(consult.ticker)}` : null,
  );
  const document = /^(F[12])\b/.exec(id)?.[1];
  if (document) return <DocumentText view={view} name={`${document}.md`} />;
  if (consult && isSynthetic(consult))
    return <Note>The figures of this run were written by a model. There is no filing behind {plain(id)}.</Note>;
  if (problem) return <Note tone="bad">{problem.message}</Note>;
  if (!data) return <Loading what="the fact" />;
  const fact = data.facts.find((one) => `F0:${one.id}` === id);
  if (fact) return <FactSheet fact={fact} facts={data} />;
  const passage = passageOf(data, id);
  if (passage)
    return (
      <div className="factsheet">
        <p className="agent doctext">{plain(passage.text)}</p>
        <p className="muted">
          {passage.form}, item {passage.item}, paragraph {passage.paragraph}, filing {passage.accession}
        </p>
      </div>
    );
  const event = eventOf(data, id);
  if (event)
    return (
      <div className="factsheet">
        <p className="factbig">
          <span className="mono">{event.form}</span>
          <span className="muted">{isoDay(event.filed)}</span>
        </p>
        <dl>
          <Row name="About" value={event.subjects} />
          <Row name="Accession" value={event.accession} />
        </dl>
        <Filing link={event.link} fictional={data.fictional} />
      </div>
    );
  return (
    <Empty title="No such fact">
      {plain(id)} is cited, and the fact sheet has nothing by that name. That is a finding in itself: a number that
      rests on it is not supported.
    </Empty>
  );
}

/** `T0:0009990001-26-000008:1A:4`: a filing, its item and a paragraph. */
function passageOf(facts: Facts, id: string): Facts["passages"][number] | undefined {
  const [kind, accession, item, paragraph] = id.split(":");
  if (kind !== "T0") return undefined;
  return facts.passages.find(
    (one) => one.accession === accession && one.item === item && String(one.paragraph) === paragraph,
  );
}

/** `E0:0009990001-26-000035`: something that the company announced. */
function eventOf(facts: Facts, id: string): Facts["events"][number] | undefined {
  const [kind, accession] = id.split(":");
  return kind === "E0" ? facts.events.find((one) => one.accession === accession) : undefined;
}

function FactSheet({ fact, facts }: { fact: Fact; facts: Facts }) {
  return (
    <div className="factsheet">
      <p className="factbig">
        <span className="mono">{factValue(fact)}</span>
        <span className="muted">
          {fact.metric}, {fact.period}
        </span>
      </p>
      <dl>
        <Row name="Exact value" value={`${fact.value} ${fact.unit}`} />
        {fact.source === "derived" ? (
          <Row name="Computed as" value={fact.formula} />
        ) : (
          <>
            <Row name="Filed in" value={`${fact.form}, ${isoDay(fact.filed)}`} />
            <Row
              name="Period"
              value={fact.start ? `${isoDay(fact.start)} to ${isoDay(fact.end)}` : `at ${isoDay(fact.end)}`}
            />
            <Row name="Tag" value={fact.concept} />
            <Row name="Accession" value={fact.accession} />
            {fact.restated_from && <Row name="First filed as" value={fact.restated_from} />}
          </>
        )}
      </dl>
      {fact.source === "derived" && (
        <p className="inputs">
          From{" "}
          {fact.inputs.map((input) => (
            <Cite key={input} id={`F0:${input}`} />
          ))}
        </p>
      )}
      <Filing link={fact.link} fictional={facts.fictional} />
    </div>
  );
}

function Filing({ link, fictional }: { link: string | null; fictional: boolean }) {
  if (link)
    return (
      <a className="btn" href={link} target="_blank" rel="noreferrer">
        <Icon name="out" />
        Open the filing at the SEC
      </a>
    );
  if (!fictional) return null;
  return <Note tone="neutral">An invented company files nothing: this is part of the demonstration.</Note>;
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{plain(value)}</dd>
    </div>
  );
}
