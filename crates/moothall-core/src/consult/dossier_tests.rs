use super::super::support::{evidence, made_up};
use super::super::text_check::TextCheck;
use super::*;
use crate::FindingSeverity;
use crate::RunFinding;
use crate::consult::{AgentFailure, ConsultInput};
use crate::evidence::documents::{FoundDocument, documents};
use crate::evidence::news::{FeedHeadline, headlines};
use crate::evidence::{DocumentKind, Provenance};
use crate::test_data::{ALL, APPLE};

fn known(evidence: Evidence) -> ConsultState {
    let document =
        |text: &str| Some(CheckedDocument { text: text.to_owned(), check: TextCheck::default() });
    ConsultState {
        evidence: Some(Box::new(evidence)),
        f1: document("Revenue was $1,250 million in FY2025 [F0:Revenue:FY2025]."),
        f2: document("Results were announced on 2026-02-10 [E0:0009990009-26-000004]."),
        ..ConsultState::default()
    }
}

#[test]
fn a_dossier_matches_its_snapshot() {
    let mut known = known(evidence());
    let found = RunFinding::new(
        "claims.uncited",
        FindingSeverity::Warn,
        "F1",
        "sentence 3: \"12%\" is UNCITED",
    );
    known.f1.as_mut().unwrap().check.findings.push(found);
    insta::assert_snapshot!(&*dossier(&known, 200_000));
}

#[test]
fn a_dossier_marks_synthetic_evidence() {
    let mut known = known(made_up());
    known.financials = Some(known.marked("| Revenue | 10 |".to_owned()));
    known.failures.insert("F2".to_owned(), AgentFailure::of_answer("the answer is empty"));
    known.f2 = None;
    insta::assert_snapshot!(&*dossier(&known, 200_000));
}

#[test]
fn the_financial_and_trend_prompts_match_their_snapshots() {
    let known = known(evidence());
    insta::assert_snapshot!("for_financial", for_financial(&known, 200_000));
    insta::assert_snapshot!("for_trend", for_trend(&known, 200_000));
}

/// Documents of a company without filings, and a headline about it.
fn from_documents() -> Evidence {
    let found = |name: &str, kind, text: &str| FoundDocument {
        name: name.to_owned(),
        kind,
        sha256: crate::Sha256Hex::of(text.as_bytes()),
        bytes: text.len() as u64,
        text: text.to_owned(),
    };
    let (documents, _) = documents(vec![
        found("plan.md", DocumentKind::Markdown, "# Prices\nUp 4% in May.\n\nTwo dealers left."),
        found("sales.csv", DocumentKind::Csv, "Year,Revenue\n2024,$11\n2025,$12\n"),
    ]);
    let headline = FeedHeadline {
        title: "Acme opens a plant".to_owned(),
        url: "https://times.example/1".to_owned(),
        source: "Example Times".to_owned(),
        published: crate::evidence::CalendarDay::parse("2026-01-30"),
    };
    let mut evidence = made_up();
    evidence.company.name = "Acme".to_owned();
    evidence.company.ticker = None;
    evidence.provenance = Provenance::Documents { name: "papers".to_owned() };
    evidence.documents = documents;
    evidence.headlines = headlines(vec![headline], None);
    evidence
}

#[test]
fn a_dossier_of_documents_matches_its_snapshot() {
    let known =
        ConsultState { evidence: Some(Box::new(from_documents())), ..ConsultState::default() };
    assert_eq!(known.company(), "Acme");
    insta::assert_snapshot!("of_documents", &*dossier(&known, 200_000));
    insta::assert_snapshot!("for_financial_of_documents", for_financial(&known, 200_000));
    insta::assert_snapshot!("for_trend_of_documents", for_trend(&known, 200_000));
}

#[test]
fn the_dossier_includes_every_document_before_completing_any() {
    let mut evidence = from_documents();
    let [plan, sales] = evidence.documents.as_mut_slice() else { panic!("two documents") };
    let long = UserPassage { number: 1, text: "Words and more words. ".repeat(40) };
    plan.passages = (1..=100).map(|number| UserPassage { number, ..long.clone() }).collect();
    sales.passages.truncate(1);
    let known = ConsultState { evidence: Some(Box::new(evidence)), ..ConsultState::default() };
    let text = dossier(&known, 8_192);
    assert!(text.contains("[U0:sales:1]") && text.contains("[U0:plan:1]"), "{text}");
    assert!(
        !text.contains("[U0:plan:99]") && text.contains("more passages have no room"),
        "{text}"
    );
}

#[test]
fn a_dossier_can_combine_filings_and_documents() {
    let (mut both, own) = (evidence(), from_documents());
    both.documents = own.documents;
    both.headlines = own.headlines;
    let known = known(both);
    let text = dossier(&known, 200_000);
    assert!(text.contains("and your documents, up to 2026-03-01"), "{text}");
    for part in ["## F0", "## E0", "## T0", "## U0", "## N0", "- [U0:plan:3] is a", "- [N0:4] is a"]
    {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn a_dossier_marks_a_fictional_company() {
    let mut evidence = evidence();
    evidence.company.fictional = true;
    let known = known(evidence);
    assert_eq!(known.company(), "Small Works (SMW), a fictional company");
    assert!(dossier(&known, 200_000).contains("\nFICTIONAL: this company exists only to show"));
}

#[test]
fn dossiers_fit_every_context_window() {
    let mut long = known(evidence());
    let passage = long.evidence.as_ref().unwrap().passages[0].clone();
    let event = long.evidence.as_ref().unwrap().events[0].clone();
    let evidence = long.evidence.as_mut().unwrap();
    evidence.passages = vec![FilingPassage { text: passage.text.repeat(14), ..passage }; 40];
    evidence.events = vec![event; 40];
    let own = from_documents();
    evidence.headlines = vec![own.headlines[0].clone(); 40];
    evidence.documents = vec![own.documents[0].clone(); 40];
    for reading in [&mut long.f1, &mut long.f2] {
        let reading = reading.as_mut().unwrap();
        reading.text = "Revenue was $1,250 million in FY2025 [F0:Revenue:FY2025].\n".repeat(200);
    }
    for sample in ALL {
        long.evidence.as_mut().unwrap().sheet = Some(sample.sheet.clone());
        for window in [ConsultInput::LEAST_WINDOW, 4_096, 8_192, 16_384, 32_768, 200_000] {
            let most = dossier_tokens(window);
            for text in [
                dossier(&long, window).to_string(),
                for_financial(&long, window),
                for_trend(&long, window),
            ] {
                let tokens = tokens_expected(&text);
                assert!(tokens <= most, "{}: {tokens} of {most}\n{text}", sample.name);
                assert_eq!(text.matches("\n```").count() % 2, 0, "a fence is open:\n{text}");
            }
        }
    }
}

#[test]
fn a_long_dossier_keeps_a_part_of_every_section() {
    let mut long = known(evidence());
    let evidence = long.evidence.as_mut().unwrap();
    evidence.sheet = Some(APPLE.sheet.clone());
    let text = dossier(&long, 200_000);
    for part in ["## F1", "## F2", "## F0", "| Revenue |", "## E0", "## T0"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert_eq!(&*text, &*dossier(&long, 200_000));
}
