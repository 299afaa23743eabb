// The side sheets of a run: a cited fact with its filing, a passage, or a document.
import { useGet } from "../api/use-get";
import type { CitedFact } from "../gen/api";
import type { RunView } from "../gen/run";
import { plain } from "../model/format";
import { AgentText } from "../ui/agent-text";
import { Cite, citeName } from "../ui/cite";
import { ProblemText } from "../ui/code-text";
import { Sheet } from "../ui/dialog";
import { Icon } from "../ui/icon";
import { Button, Empty, Loading, Note } from "../ui/parts";
import { useAddress } from "../ui/use-address";

/** The side sheets of a run's pages. The address says which one is open. */
export function EvidenceSheets({ view }: { view: RunView }) {
  const [params, change] = useAddress();
  const fact = params.get("fact");
  const doc = params.get("doc");
  const close = (name: string) => change({ [name]: null }, { replace: false, preventScrollReset: true });
  return (
    <>
      <Sheet title={doc ? docTitle(doc) : "Document"} open={doc !== null} onClose={() => close("doc")}>
        {doc !== null && <DocumentText view={view} name={doc} />}
      </Sheet>
      <Sheet title={fact ? plain(citeName(fact)) : "Fact"} open={fact !== null} onClose={() => close("fact")}>
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
      <Empty title="Could not load the document" action={<Button onClick={reload}>Try again</Button>}>
        <ProblemText problem={problem} />
      </Empty>
    );
  if (data === undefined) return <Loading what={name} />;
  return <AgentText text={data} big />;
}

function FactOf({ view, id }: { view: RunView; id: string }) {
  // F1 and F2 are documents of the run itself.
  const document = /^F[12]\b/.exec(id)?.[0];
  const path = `/api/runs/${view.about.run_id}/facts/${encodeURIComponent(id)}`;
  const { data, problem } = useGet<CitedFact>(document ? null : path);
  if (document) return <DocumentText view={view} name={`${document}.md`} />;
  if (problem?.code === "not-found")
    return (
      <Empty title="Fact not found">
        {plain(id)} is cited but does not exist in the evidence of this run. Numbers that rely on it are not supported.
      </Empty>
    );
  if (problem)
    return (
      <Note tone="bad">
        <ProblemText problem={problem} />
      </Note>
    );
  if (!data) return <Loading what="the fact" />;
  return <FactSheet fact={data} view={view} />;
}

function FactSheet({ fact, view }: { fact: CitedFact; view: RunView }) {
  const isNumber = fact.id.startsWith("F0:");
  return (
    <div className="factsheet">
      <p className={isNumber ? "factbig" : "agent doctext"}>{plain(fact.says)}</p>
      <dl>
        <Row name="Cited as" value={fact.id} />
        {fact.filed && <Row name="Filed in" value={fact.filed} />}
        {fact.accession && <Row name="Accession" value={fact.accession} />}
        {fact.formula && <Row name="Computed as" value={fact.formula} />}
      </dl>
      {fact.inputs.length > 0 && (
        <p className="inputs">
          From{" "}
          {fact.inputs.map((input) => (
            <Cite key={input} id={input.startsWith("F0:") ? input : `F0:${input}`} />
          ))}
        </p>
      )}
      <Filing link={fact.link} fictional={view.consult?.gathered?.fictional ?? false} />
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
  return <Note tone="neutral">Fictional company without filings to open.</Note>;
}

function Row({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{plain(value)}</dd>
    </div>
  );
}
