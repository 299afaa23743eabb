use super::*;
use crate::consult::EvidenceSource;
use crate::event::RoundStatus;

fn about() -> RunInfo {
    RunInfo {
        run_id: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
        workflow: "consult".to_owned(),
        title: "HLXI".to_owned(),
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

fn told(bodies: impl IntoIterator<Item = RunEventBody>) -> RunView {
    let mut view = RunView::empty(about());
    for (seq, body) in (1..).zip(bodies) {
        let at = format!("2026-01-05T09:00:{seq:02}.000Z");
        view.apply(&EventEnvelope { seq, run_id: about().run_id, at, body });
    }
    view
}

fn consult() -> RunEventBody {
    RunEventBody::ConsultStarted {
        ticker: "HLXI".to_owned(),
        listed: true,
        rounds: 3,
        moves: 12,
        provenance: EvidenceSource::Filings,
        est_calls: 9,
    }
}

fn paused() -> RunEventBody {
    RunEventBody::RunPaused {
        number: 1,
        reason: PauseReason::Budget,
        detail: "no money left".to_owned(),
    }
}

fn round(move_id: &str) -> RunEventBody {
    let status = RoundStatus::CriticResponding;
    RunEventBody::SandboxRound { move_id: move_id.to_owned(), round: 1, status }
}

#[test]
fn an_event_applied_twice_counts_once_in_the_view() {
    let mut view = told([consult(), round("m1")]);
    let before = view.clone();
    let at = "2027-01-01T00:00:00.000Z".to_owned();
    view.apply(&EventEnvelope { seq: 2, run_id: about().run_id, at, body: round("m9") });
    assert_eq!(view, before);
}

#[test]
fn an_event_after_a_pause_marks_the_run_as_running() {
    let waiting = told([consult(), paused()]);
    let detail = "no money left".to_owned();
    assert_eq!(waiting.status, RunStatus::Paused { reason: PauseReason::Budget, detail });
    assert_eq!(told([consult(), paused(), round("m1")]).status, RunStatus::Running);
}

#[test]
fn the_view_lists_moves_in_numeric_order() {
    let view = told([consult(), round("m10"), round("m2"), round("m1")]);
    let ids: Vec<_> = view.consult.unwrap().moves.into_iter().map(|one| one.move_id).collect();
    assert_eq!(ids, ["m1", "m2", "m10"]);
}

#[test]
fn the_view_of_a_finished_run_has_an_end_time_and_a_verdict() {
    let view = told([consult(), RunEventBody::RunFinished { verdict: RunVerdict::NeedsPerson }]);
    assert_eq!(view.status, RunStatus::Complete { verdict: RunVerdict::NeedsPerson });
    assert_eq!(view.ended_at.as_deref(), Some("2026-01-05T09:00:02.000Z"));
}

#[test]
fn the_view_shows_the_weakest_isolation_of_a_run() {
    let isolation = |move_id: &str, class, fallback: Option<&str>| RunEventBody::Isolation {
        effect_id: move_id.parse().unwrap(),
        move_id: move_id.to_owned(),
        class,
        fallback: fallback.map(str::to_owned),
    };
    let view = told([
        consult(),
        isolation("m1", IsolationClass::HardwareVm, None),
        isolation("m2", IsolationClass::None, Some("no image")),
        isolation("m3", IsolationClass::EmulatedVm, Some("no image")),
    ]);
    assert_eq!(view.isolation, Some(IsolationClass::None));
    assert_eq!(view.fallbacks, ["no image"]);
}
