//! Demo texts for F1, F2 and synthetic data.

use std::fmt::Write as _;

use super::MARK;
use super::facts::DemoFacts;
use super::quotes::{DocumentQuote, quotes};

/// Text of F1: a sentence for each row present in the table.
pub(crate) fn financial(prompt: &str) -> String {
    let facts = DemoFacts::read(prompt);
    if facts.is_empty() {
        return of_documents(prompt);
    }
    let sections: [(&str, &[&str], &[&str]); 4] = [
        ("Growth", &["Revenue"], &["Revenue.yoy", "NetIncome", "NetInterestIncome"]),
        (
            "Profitability",
            &["OperatingMargin", "NetMargin"],
            &["GrossMargin", "CostIncomeRatio", "RDIntensity"],
        ),
        ("Cash and capital", &["CFO"], &["Capex", "FreeCashFlow", "ROE"]),
        ("Balance sheet", &["Equity"], &["Cash", "TotalDebt", "Deposits", "Assets"]),
    ];
    let mut text = format!("This reading was written without a model {MARK}.\n");
    for (heading, compared, told) in sections {
        let _ = writeln!(text, "\n## {heading}");
        let changes = compared.iter().filter_map(|metric| facts.change(metric));
        let rest = (0..told.len()).filter_map(|skip| facts.sentence(told, skip));
        let sentences: Vec<String> = changes.chain(rest).collect();
        if sentences.is_empty() {
            text.push_str("- The table has nothing on this.\n");
        }
        for sentence in sentences {
            let _ = writeln!(text, "- {sentence}");
        }
    }
    text.push_str(
        "\n## Gaps and doubts\n- What the table leaves blank was not filed under a tag that means the same.\n",
    );
    text
}

/// Text of F1 without a table: quotes from the user's documents.
fn of_documents(prompt: &str) -> String {
    let mut text = format!("This reading was written without a model {MARK}.\n\n## Growth\n");
    let said = quotes(prompt);
    if said.is_empty() {
        text.push_str("- The evidence has nothing on this.\n");
    }
    for quote in said.iter().take(5) {
        let _ = writeln!(text, "- {}", quote.sentence());
    }
    text.push_str("\n## Gaps and doubts\n- These documents are not audited.\n");
    text
}

/// Text of F2: the newest events and the beginnings of passages.
pub(crate) fn trend(prompt: &str) -> String {
    let mut text =
        format!("This reading was written without a model {MARK}.\n\n## What happened\n");
    let events: Vec<String> = prompt.lines().filter_map(event).take(5).collect();
    if events.is_empty() {
        text.push_str("- The evidence contains no filing events.\n");
    }
    for event in events {
        let _ = writeln!(text, "- {event}");
    }
    for headline in prompt.lines().filter_map(headline).take(3) {
        let _ = writeln!(text, "- {headline}");
    }
    text.push_str("\n## Where it is heading\n");
    let revenue: Vec<String> = prompt.lines().filter_map(revenue).collect();
    if revenue.is_empty() {
        text.push_str("- The evidence has no line of revenue.\n");
    }
    for line in revenue.iter().rev().take(3).rev() {
        let _ = writeln!(text, "- {line}");
    }
    text.push_str("\n## Risks the company names\n");
    let own = quotes(prompt);
    let own = own.iter().take(4).map(DocumentQuote::sentence);
    let passages: Vec<String> = prompt.lines().filter_map(passage).take(4).chain(own).collect();
    if passages.is_empty() {
        text.push_str("- The evidence contains no passages of a report.\n");
    }
    for passage in passages {
        let _ = writeln!(text, "- {passage}");
    }
    text.push_str("\n## What is not reported\n- An event says that something was reported, not what follows from it.\n");
    text
}

/// Turns `[E0:…] 2025-10-30 8-K: results of operations (2.02)` into a sentence.
fn event(line: &str) -> Option<String> {
    let (id, rest) = line.strip_prefix("[E0:")?.split_once("] ")?;
    let (when, subjects) = rest.split_once(": ")?;
    let mut words = when.split(' ');
    let (day, form) = (words.next()?, words.next()?);
    let subjects: Vec<&str> =
        subjects.split("; ").map(|one| one.split(" (").next().unwrap_or(one)).collect();
    Some(format!("The {form} filed on {day} reports: {} [E0:{id}].", subjects.join("; ")))
}

/// Turns `- Revenue FY2025: … [F0:Revenue:FY2025]` into a sentence.
fn revenue(line: &str) -> Option<String> {
    let (period, rest) = line.strip_prefix("- Revenue FY")?.split_once(": ")?;
    let (value, id) = rest.split_once(" [F0:")?;
    let id = id.strip_suffix(']')?;
    Some(format!("Revenue was {value} in FY{period} [F0:{id}]."))
}

/// Quotes the first words of a passage.
fn passage(line: &str) -> Option<String> {
    let (id, words) = line.strip_prefix("[T0:")?.split_once("] ")?;
    let quoted: Vec<&str> = words.split(' ').take(10).collect();
    let quoted = quoted.join(" ");
    let is_plain = !quoted.contains(['"', '“', '”', '[', ']']);
    let end = quoted.trim_end_matches([',', ';', ':', '.']);
    is_plain.then(|| format!("The report says: \"{end}\" [T0:{id}]."))
}

/// Turns `[N0:2] 2026-01-02 Example Times: Acme opens a plant` into a sentence.
fn headline(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("[N0:")?.split_once("] ")?;
    let (_, words) = rest.split_once(": ")?;
    let is_plain = !words.contains(['"', '“', '”', '[', ']', '.', '!', '?', '…']);
    is_plain.then(|| format!("A headline says: \"{words}\" [N0:{number}]."))
}

/// Synthetic financial statements.
pub(crate) fn financials() -> String {
    format!(
        "Invented for a demonstration, without a model {MARK}.\n\n\
         | | Year 1 | Year 2 | Year 3 |\n|---|---|---|---|\n\
         | Revenue | 1,000 | 1,080 | 1,150 |\n| Gross profit | 420 | 460 | 495 |\n\
         | Operating income | 150 | 171 | 180 |\n| Net income | 110 | 126 | 131 |\n\
         | Operating cash flow | 160 | 175 | 190 |\n| Capital expenditure | 60 | 70 | 90 |\n\
         | Cash | 300 | 340 | 360 |\n| Debt | 200 | 190 | 240 |\n\n\
         Two segments, instruments and services; services grow faster and earn more.\n"
    )
}

/// Synthetic news.
pub(crate) fn news() -> String {
    format!(
        "Invented for a demonstration, without a model {MARK}.\n\n\
         - Early in the year: a new instrument reaches its first customers.\n\
         - In spring: a supplier of a key part raises its prices.\n\
         - In summer: a competitor opens a service centre in the same region.\n\
         - In autumn: a regulator asks the whole industry for more records.\n\
         - Late in the year: the head of sales leaves and is replaced from inside.\n\n\
         Sentiment is calm: customers praise the service and complain about delivery times.\n"
    )
}
