//! The web UI's reducer must produce the same views as `moothall_core::view`.
#![allow(
    clippy::disallowed_methods,
    reason = "compares committed files, and writes them on request"
)]

use moothall_core::EventEnvelope;
use moothall_core::view::{RunInfo, RunView};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/fixtures");

fn about(events: &[EventEnvelope]) -> RunInfo {
    RunInfo {
        run_id: events[0].run_id.clone(),
        workflow: "consult".to_owned(),
        title: "HLXI Helix Instruments: 4 moves, 3 rounds".to_owned(),
        model: "demo".to_owned(),
        models: None,
        build: "0.1.0".to_owned(),
        created_at: "2026-01-05T09:00:00.000Z".to_owned(),
        cap_micro_usd: None,
        cap_tokens: None,
        committee: None,
        pauses_after_moves: false,
        driven: true,
        parent: None,
        do_nothing: None,
    }
}

#[track_caller]
fn check(name: &str, view: &RunView) {
    let path = format!("{FOLDER}/{name}.json");
    let fresh = format!("{}\n", serde_json::to_string_pretty(view).unwrap());
    if std::env::var_os("MOOTHALL_CODEGEN").is_some() {
        fs_err::write(&path, fresh).unwrap();
        return;
    }
    let committed = fs_err::read_to_string(&path).unwrap_or_default();
    assert_eq!(committed, fresh, "hint: `cargo xtask codegen` writes {path}");
}

fn events(name: &str) -> Vec<EventEnvelope> {
    let text = fs_err::read_to_string(format!("{FOLDER}/{name}.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folded(events: &[EventEnvelope], count: usize) -> RunView {
    let mut view = RunView::empty(about(events));
    events.iter().take(count).for_each(|event| view.apply(event));
    view
}

#[test]
fn the_run_view_matches_the_fixture_of_the_web_ui() {
    let run = events("run");
    check("view", &folded(&run, run.len()));
    check("view-half", &folded(&run, run.len() / 2));
    for name in ["paused", "cancelled", "failed"] {
        let run = events(name);
        check(&format!("{name}-view"), &folded(&run, run.len()));
    }
}

#[test]
fn a_run_view_resumed_at_any_event_ends_the_same() {
    let run = events("run");
    let whole = folded(&run, run.len());
    for cut in [0, 1, 2, run.len() / 3, run.len() - 1] {
        let text = serde_json::to_string(&folded(&run, cut)).unwrap();
        let mut view: RunView = serde_json::from_str(&text).unwrap();
        // Include some events that are already applied, as after a dropped connection.
        run.iter().skip(cut.saturating_sub(3)).for_each(|event| view.apply(event));
        assert_eq!(view, whole, "from {cut}");
    }
}
