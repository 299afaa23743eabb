//! Documents and headlines: what is read, what is reported as missing, and what is never read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use moothall_core::consult::{EvidenceSource, GatherFailureKind, GatherRequest};
use moothall_core::evidence::{CalendarDay, Evidence, Provenance};
use moothall_core::sandbox::{ExecutionExit, SandboxExecution, SandboxFailure, SandboxFailureKind};
use moothall_sandbox::{ExecuteFuture, ExecutionJob, ExecutionOutput, ProgramExecutor};
use moothall_sources::{CombinedGatherer, DocumentFolder, GatherError, NewsSource};

use crate::edgar_server::{Answer, EdgarServer};
use crate::world::execution;

fn request() -> GatherRequest {
    GatherRequest {
        ticker: String::new(),
        name: Some("Acme Pumps Ltd".to_owned()),
        source: EvidenceSource::Files,
        as_of: None,
        allow_stale: false,
        documents: Some("documents".to_owned()),
        news: None,
    }
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, bytes).unwrap();
    }
    folder
}

async fn gather(
    folder: &Path,
    pdf: Option<Arc<dyn ProgramExecutor>>,
    news: Option<NewsSource>,
    request: GatherRequest,
) -> Result<Evidence, GatherError> {
    let mut sources =
        CombinedGatherer::default().with_documents(DocumentFolder::new(folder.to_owned(), pdf));
    let request = GatherRequest { news: news.as_ref().map(NewsSource::label), ..request };
    if let Some(news) = news {
        sources = sources.with_news(news);
    }
    sources.gather(&request, 0).await
}

/// All passages as pairs of citation and text.
fn passages(evidence: &Evidence) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    for document in &evidence.documents {
        for passage in &document.passages {
            found.push((document.citation(passage), passage.text.as_str()));
        }
    }
    found
}

#[tokio::test]
async fn files_of_a_request_are_read_like_those_of_a_folder() {
    let files: [(&str, &[u8]); 4] = [
        ("plan.md", b"# Prices\nUp 4% in May."),
        ("sales.csv", b"Year,Revenue\n2025,\"$1,250\"\n"),
        ("old.txt", b"caf\xe9"),
        ("report.pdf", b"%PDF-1.7"),
    ];
    let large = vec![b'x'; (4 << 20) + 1];
    let files = [&files[..], &[("large.txt", large.as_slice())]].concat();
    let documents = folder(&files);
    let of_folder = gather(documents.path(), None, None, request()).await.unwrap();
    let in_memory = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
    let sources = CombinedGatherer::default()
        .with_documents(DocumentFolder::in_memory(in_memory.collect(), None));
    let of_request = sources.gather(&request(), 0).await.unwrap();
    assert_eq!(of_request.documents.len(), 2);
    assert_eq!(of_request.missing.len(), 3, "{:?}", of_request.missing);
    assert_eq!(of_request, of_folder);
}

#[tokio::test]
async fn a_private_company_is_gathered_from_documents_only() {
    let documents = folder(&[
        ("b/notes.txt", b"Two dealers left."),
        ("plan.md", b"# Prices\nUp 4% in May."),
        ("sales.csv", b"Year,Revenue\n2025,\"$1,250\"\n"),
        (".secret.md", b"hidden"),
        (".git/config.txt", b"hidden"),
        ("logo.png", b"\x89PNG"),
        ("old.txt", b"caf\xe9"),
    ]);
    let evidence = gather(documents.path(), None, None, request()).await.unwrap();
    assert_eq!(evidence.company.name, "Acme Pumps Ltd");
    assert_eq!((&evidence.company.ticker, &evidence.sheet), (&None, &None));
    assert_eq!(evidence.provenance, Provenance::Documents { name: "documents".to_owned() });
    assert_eq!(evidence.provenance.to_string(), "your documents (documents)");
    let expected = [
        ("U0:notes:1", "Two dealers left."),
        ("U0:plan:1", "Prices: Up 4% in May."),
        ("U0:sales:1", "Year: 2025; Revenue: $1,250"),
    ];
    assert_eq!(passages(&evidence), expected.map(|(id, text)| (id.to_owned(), text)));
    assert_eq!(
        evidence.missing,
        ["documents: unsupported files were skipped: logo.png", "old.txt: not UTF-8 text"]
    );
    let urls: Vec<&str> = evidence.sources.iter().map(|source| source.url.as_str()).collect();
    assert_eq!(urls, ["document:b/notes.txt", "document:plan.md", "document:sales.csv"]);
    let written = serde_json::to_string(&evidence).unwrap();
    assert!(!written.contains(documents.path().to_str().unwrap()), "{written}");
}

#[tokio::test]
async fn no_document_outside_of_the_directory_is_read() {
    let outside = folder(&[("secret.md", b"The secret."), ("deep/more.md", b"More secrets.")]);
    let documents = folder(&[("plan.md", b"A plan.")]);
    let link = |to: &str, name: &str| {
        fs_err::os::unix::fs::symlink(outside.path().join(to), documents.path().join(name))
    };
    link("secret.md", "innocent.md").unwrap();
    link("deep", "folder").unwrap();
    let evidence = gather(documents.path(), None, None, request()).await.unwrap();
    assert_eq!(passages(&evidence), [("U0:plan:1".to_owned(), "A plan.")]);
    assert_eq!(evidence.missing, ["documents: 2 symbolic links were not followed"]);
}

#[tokio::test]
async fn a_folder_without_documents_is_refused() {
    for (documents, words) in [
        (folder(&[]), "the folder contains no documents"),
        (folder(&[("a.txt", b"\xff")]), "no document could be read; a.txt: not UTF-8 text"),
    ] {
        let error = gather(documents.path(), None, None, request()).await.unwrap_err();
        assert_eq!((error.kind, error.detail.as_str()), (GatherFailureKind::NoDocuments, words));
    }
    let gone = gather(Path::new("/does/not/exist"), None, None, request()).await.unwrap_err();
    assert_eq!(gone.kind, GatherFailureKind::NoDocuments);
}

#[tokio::test]
async fn documents_beyond_the_limits_are_reported() {
    let many: Vec<(String, Vec<u8>)> =
        (0..205).map(|number| (format!("{number:03}.txt"), b"Words.".to_vec())).collect();
    let many: Vec<(&str, &[u8])> =
        many.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let documents = folder(&many);
    fs_err::write(documents.path().join("000.txt"), vec![b'a'; (4 << 20) + 1]).unwrap();
    let evidence = gather(documents.path(), None, None, request()).await.unwrap();
    assert_eq!(evidence.documents.len(), 200);
    assert_eq!(
        evidence.missing,
        [
            "000.txt: file is larger than 4194304 bytes",
            "documents: the folder exceeds the limit (200 files, 48 MiB)",
        ]
    );
}

/// A PDF extractor with a scripted result.
#[derive(Debug)]
struct Reader(Result<(ExecutionExit, Option<&'static [u8]>), SandboxFailureKind>);

impl ProgramExecutor for Reader {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            assert_eq!(job.inputs.values().next().unwrap(), b"%PDF-1.4");
            assert!(job.request.collect && job.request.limits.memory_bytes <= 256 << 20);
            match &self.0 {
                Ok((exit, text)) => {
                    let text = text.map(|text| ("text.txt".parse().unwrap(), text.to_vec()));
                    let execution = SandboxExecution { exit: exit.clone(), ..execution() };
                    Ok(ExecutionOutput { execution, files: text.into_iter().collect::<BTreeMap<_, _>>() })
                }
                Err(kind) => Err(SandboxFailure {
                    kind: *kind,
                    detail: "image `documents`: it has not been built; build the image: `moothall image build documents`".to_owned(),
                }),
            }
        })
    }
}

async fn read_pdf(reader: Option<Reader>) -> (Vec<String>, Vec<String>) {
    let documents = folder(&[("report.pdf", b"%PDF-1.4"), ("plan.md", b"A plan.")]);
    let reader = reader.map(|reader| Arc::new(reader) as Arc<dyn ProgramExecutor>);
    let evidence = gather(documents.path(), reader, None, request()).await.unwrap();
    let texts = passages(&evidence).into_iter().map(|(id, text)| format!("{id} {text}")).collect();
    (texts, evidence.missing)
}

#[tokio::test]
async fn the_text_of_a_pdf_comes_from_the_sandboxed_extractor() {
    let text: &[u8] = b"Page one says 4%.\x0cPage two.";
    let read = read_pdf(Some(Reader(Ok((ExecutionExit::Exited { code: 0 }, Some(text)))))).await;
    let expected = ["U0:plan:1 A plan.", "U0:report:1 Page one says 4%.", "U0:report:2 Page two."];
    assert_eq!(read, (expected.map(str::to_owned).to_vec(), Vec::new()));
}

#[tokio::test]
async fn an_unreadable_pdf_is_reported_as_a_gap_with_the_reason() {
    let gap = |reader| async {
        let (texts, missing) = read_pdf(reader).await;
        assert_eq!(texts, ["U0:plan:1 A plan."]);
        missing.into_iter().next().unwrap()
    };
    for (exit, text, words) in [
        (ExecutionExit::TimedOut, None, "the PDF extractor timed out after 120 seconds"),
        (
            ExecutionExit::OutOfMemory,
            None,
            "the PDF extractor used more than 256 MiB and was stopped",
        ),
        (ExecutionExit::Exited { code: 11 }, None, "the PDF is encrypted"),
        (ExecutionExit::Exited { code: 12 }, None, "not a readable PDF"),
        (
            ExecutionExit::Signalled { signal: 11 },
            None,
            "the PDF extractor was killed by signal 11",
        ),
        (ExecutionExit::Exited { code: 0 }, None, "the PDF extractor produced no text"),
        (
            ExecutionExit::Exited { code: 0 },
            Some(&b"\xff\xfe"[..]),
            "the PDF extractor produced invalid UTF-8",
        ),
    ] {
        assert_eq!(gap(Some(Reader(Ok((exit, text))))).await, format!("report.pdf: {words}"));
    }
    let unbuilt = gap(Some(Reader(Err(SandboxFailureKind::Image)))).await;
    assert!(unbuilt.contains("`moothall image build documents`"), "{unbuilt}");
    assert_eq!(
        gap(None).await,
        "report.pdf: PDFs are only read in a sandbox, and none is available"
    );
}

const GDELT: &str = r#"{"articles": [
  {"url": "https://news.example/new", "title": "Acme Pumps opens a plant",
   "seendate": "20260301T090000Z", "domain": "news.example"},
  {"url": "https://news.example/old", "title": "Acme Pumps names a chief",
   "seendate": "20260101T090000Z", "domain": "news.example"}]}"#;

#[tokio::test]
async fn headlines_are_requested_once_by_company_name_up_to_the_day() {
    let server = EdgarServer::scripted(vec![Answer::ok(GDELT), Answer::status(429)]).await;
    let documents = folder(&[("plan.md", b"A plan.")]);
    let news = NewsSource::Gdelt { endpoint: format!("{}/doc", server.base) };
    let sources = CombinedGatherer::default()
        .with_documents(DocumentFolder::new(documents.path().to_owned(), None))
        .with_news(news);
    let request = GatherRequest {
        as_of: CalendarDay::parse("2026-02-01"),
        news: Some("gdelt".to_owned()),
        ..request()
    };
    let evidence = sources.gather(&request, 0).await.unwrap();
    let texts: Vec<(u32, &str)> =
        evidence.headlines.iter().map(|one| (one.number, one.text.as_str())).collect();
    assert_eq!(texts, [(1, "Acme Pumps names a chief")]);
    assert_eq!(sources.gather(&request, 0).await.unwrap(), evidence);
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(
        asked,
        [
            "/doc?query=%22Acme+Pumps%22&mode=artlist&format=json&sort=datedesc&timespan=3m&maxrecords=75"
        ]
    );
}

#[tokio::test]
async fn unavailable_news_are_reported_as_a_gap() {
    let documents = folder(&[("plan.md", b"A plan.")]);
    let missing = |news: NewsSource| async {
        let evidence = gather(documents.path(), None, Some(news), request()).await.unwrap();
        assert_eq!(evidence.headlines, []);
        evidence.missing.into_iter().next().unwrap()
    };
    let throttled = EdgarServer::scripted(vec![Answer::ok("Please limit requests.")]).await;
    let feed = |url: String| NewsSource::Feed { url };
    let gdelt = NewsSource::Gdelt { endpoint: throttled.base.clone() };
    assert_eq!(
        missing(gdelt).await,
        "news (gdelt): invalid list of articles: Please limit requests."
    );
    let endless = EdgarServer::scripted(vec![Answer::Endless { bytes: 5 << 20 }]).await;
    assert_eq!(
        missing(feed(endless.base.clone())).await,
        "news (rss:127.0.0.1): response is larger than 4194304 bytes"
    );
    let away = Answer::Whole(302, &[("location", "https://elsewhere.example/")], Vec::new());
    let moved = EdgarServer::scripted(vec![away]).await;
    assert_eq!(
        missing(feed(moved.base.clone())).await,
        "news (rss:127.0.0.1): the server returned status 302"
    );
    assert_eq!(
        missing(feed("http://news.example/rss?key=SECRET".to_owned())).await,
        "news (rss:news.example): only https URLs are supported"
    );
    assert_eq!(
        missing(NewsSource::File { path: "/does/not/exist.xml".into() }).await,
        "news (file:exist.xml): cannot read the file (entity not found)"
    );
}
