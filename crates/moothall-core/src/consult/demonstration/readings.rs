//! F1, F2, and data that the demonstration makes up.

use std::fmt::Write as _;

use super::MARK;
use super::facts::Facts;
use super::quotes::{Quote, quotes};

/// What F1 says: a sentence for each row that the table has.
pub(super) fn financial(prompt: &str) -> String {
    let facts = Facts::read(prompt);
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

/// What F1 says where there is no table: what documents say about numbers.
fn of_documents(prompt: &str) -> String {
    let mut text = format!("This reading was written without a model {MARK}.\n\n## Growth\n");
    let said = quotes(prompt);
    if said.is_empty() {
        text.push_str("- The evidence has nothing on this.\n");
    }
    for quote in said.iter().take(5) {
        let _ = writeln!(text, "- {}", quote.sentence());
    }
    text.push_str("\n## Gaps and doubts\n- Nobody audited what these documents say.\n");
    text
}

/// What F2 says: the newest events and the beginnings of passages.
pub(super) fn trend(prompt: &str) -> String {
    let mut text =
        format!("This reading was written without a model {MARK}.\n\n## What happened\n");
    let events: Vec<String> = prompt.lines().filter_map(event).take(5).collect();
    if events.is_empty() {
        text.push_str("- There are no filing events in the evidence.\n");
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
    let own = own.iter().take(4).map(Quote::sentence);
    let passages: Vec<String> = prompt.lines().filter_map(passage).take(4).chain(own).collect();
    if passages.is_empty() {
        text.push_str("- There are no passages of a report in the evidence.\n");
    }
    for passage in passages {
        let _ = writeln!(text, "- {passage}");
    }
    text.push_str("\n## What nobody says\n- An event says that something was reported, not what follows from it.\n");
    text
}

/// `[E0:…] 2025-10-30 8-K: results of operations (2.02)` as a sentence.
fn event(line: &str) -> Option<String> {
    let (id, rest) = line.strip_prefix("[E0:")?.split_once("] ")?;
    let (when, subjects) = rest.split_once(": ")?;
    let mut words = when.split(' ');
    let (day, form) = (words.next()?, words.next()?);
    let subjects: Vec<&str> =
        subjects.split("; ").map(|one| one.split(" (").next().unwrap_or(one)).collect();
    Some(format!("The {form} filed on {day} reports: {} [E0:{id}].", subjects.join("; ")))
}

/// `- Revenue.yoy FY2025: 6.4% [F0:Revenue.yoy:FY2025]` as a sentence.
fn revenue(line: &str) -> Option<String> {
    let (period, rest) = line.strip_prefix("- Revenue FY")?.split_once(": ")?;
    let (value, id) = rest.split_once(" [F0:")?;
    let id = id.strip_suffix(']')?;
    Some(format!("Revenue was {value} in FY{period} [F0:{id}]."))
}

/// The first words of a passage, quoted.
fn passage(line: &str) -> Option<String> {
    let (id, words) = line.strip_prefix("[T0:")?.split_once("] ")?;
    let quoted: Vec<&str> = words.split(' ').take(10).collect();
    let quoted = quoted.join(" ");
    let is_plain = !quoted.contains(['"', '“', '”', '[', ']']);
    let end = quoted.trim_end_matches([',', ';', ':', '.']);
    is_plain.then(|| format!("The report says: \"{end}\" [T0:{id}]."))
}

/// `[N0:2] 2026-01-02 Example Times: Acme opens a plant` as a sentence.
fn headline(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("[N0:")?.split_once("] ")?;
    let (_, words) = rest.split_once(": ")?;
    let is_plain = !words.contains(['"', '“', '”', '[', ']', '.', '!', '?', '…']);
    is_plain.then(|| format!("A headline says: \"{words}\" [N0:{number}]."))
}

/// Made-up accounts.
pub(super) fn financials() -> String {
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

/// Made-up news.
pub(super) fn news() -> String {
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
