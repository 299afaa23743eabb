//! The documents of a consultation as files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::consult_report::ConsultReport;
use super::export::export;
use super::sections::{baseline_json, do_nothing_json};
use crate::consult::DO_NOTHING_ID;

/// File names and contents: `F0.json`, `F1.md`, `F2.md`, `m1.md` …, `m1.i1.json` …, `scores.json`,
/// and the scores of doing nothing and of the baseline without debates. Names are made from
/// validated ids, never from model output.
pub fn artifacts(view: &ConsultReport) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut put = |name: String, content: String| files.insert(name, content);
    if let Some(evidence) = view.evidence() {
        put("F0.json".to_owned(), pretty(&json!(evidence)));
    }
    let known = &view.proceedings;
    for (name, text) in [("financials", &known.financials), ("news", &known.news)] {
        if let Some(text) = text {
            put(format!("synthetic-{name}.md"), text.clone());
        }
    }
    for (name, document) in [("F1.md", &known.f1), ("F2.md", &known.f2)] {
        if let Some(document) = document {
            put(name.to_owned(), document.text.clone());
        }
    }
    for one in view.moves() {
        put(format!("{}.md", one.move_id), one.markdown());
    }
    for (move_id, debate) in &view.debates {
        for (name, log) in &debate.logs {
            put(format!("{move_id}.{name}.json"), pretty(&json!(log)));
        }
    }
    if let Some(nothing) = &known.nothing {
        put(format!("{DO_NOTHING_ID}.md"), nothing.markdown());
    }
    for (name, scores) in
        [("do-nothing.json", do_nothing_json(view)), ("baseline.json", baseline_json(view))]
    {
        if !scores.is_null() {
            put(name.to_owned(), pretty(&scores));
        }
    }
    put("scores.json".to_owned(), pretty(&export(view)["policy_scores"]));
    files
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
