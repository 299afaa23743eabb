use std::collections::BTreeMap;

use insta::assert_snapshot;
use moothall_core::debate::{DebateDegradation, DebateStance};
use moothall_core::model::{CallPurpose, FailureKind, ModelName, TokenUsage, UsageBasis};
use moothall_core::sandbox::IsolationClass;
use moothall_core::{
    EffectId, FindingSeverity, RoundStatus, RuleId, RunEvent, RunEventBody, RunFinding, StageStatus,
};
use moothall_models::ProviderOutage;
use moothall_store::StoredEvent;

use super::super::progress_lines::{ShownNotices, plain};
use super::*;

/// A consultation with one event per second.
struct Story {
    board: ConsultProgress,
    seq: u64,
}

impl Story {
    fn new(moves: u32, rounds: u32) -> Self {
        let mut story = Self { board: ConsultProgress::default(), seq: 0 };
        story.tell(RunEventBody::ConsultStarted {
            ticker: "HLXI".to_owned(),
            listed: true,
            rounds,
            moves,
            provenance: EvidenceSource::Filings,
            est_calls: 7 + moves * (1 + 3 + 6 * (rounds - 1) + 3),
        });
        story
    }

    fn tell(&mut self, body: RunEventBody) {
        self.line(body);
    }

    /// Adds an event and returns its line for pipes and logs.
    fn line(&mut self, body: RunEventBody) -> Option<String> {
        self.seq += 1;
        let event = match body.effect_id().cloned() {
            Some(id) => RunEvent::about(&id, body),
            None => RunEvent::of_run(body),
        };
        let stored = StoredEvent { seq: self.seq, at_ms: self.seq * 1000, event };
        let before = ShownNotices::of(&self.board, None);
        self.board.event(&stored);
        plain(&self.board, before, &stored)
    }

    fn layer(&mut self, layer: u8) {
        if let Some(before) = layer.checked_sub(1) {
            self.tell(RunEventBody::LayerComplete {
                layer: before,
                status: StageStatus::Done,
                artifacts: Vec::new(),
                total_policies_scored: None,
                gathered: None,
            });
        }
        self.tell(RunEventBody::LayerStart { layer, status: StageStatus::Running });
    }

    fn call(&mut self, id: &str) {
        let model: ModelName = "anthropic/claude-haiku-5-5".parse().unwrap();
        self.tell(RunEventBody::ModelReplied {
            instead_of: None,
            effect_id: effect(id),
            purpose: CallPurpose::Critic,
            model,
            usage: TokenUsage {
                input: 900,
                cache_read: 8100,
                output: 300,
                ..TokenUsage::default()
            },
            usage_basis: UsageBasis::Reported,
            cost_micro_usd: Some(MicroUsd::new(420)),
        });
    }

    /// The stages before the debates.
    fn up_to_debates(moves: u32, rounds: u32) -> Self {
        let mut story = Self::new(moves, rounds);
        story.layer(0);
        story.layer(1);
        story.call("F1");
        story.call("F2");
        story.layer(2);
        for analyst in 1..=5 {
            let agent_id = format!("analyst_{analyst}");
            let persona = "Market Expander".to_owned();
            story.tell(RunEventBody::AgentStart { layer: 2, agent_id, persona });
        }
        for analyst in 1..=5 {
            story.call(&format!("analyst_{analyst}"));
        }
        let outputs: Vec<String> = (1..=moves).map(|number| format!("m{number}.md")).collect();
        story.tell(RunEventBody::AgentComplete {
            layer: 2,
            agent_id: "analyst_1".to_owned(),
            output: outputs.first().cloned(),
            outputs,
            titles: BTreeMap::new(),
        });
        story.layer(3);
        let title = |number: u32| match number {
            3 => "把服务价格分两步提高，并且在每一步之后检查客户流失率和毛利率的变化".to_owned(),
            4 => "Short".to_owned(),
            _ => format!(
                "Sell calibration number {number} as a subscription to existing customers in the mid-market"
            ),
        };
        story.board.name((1..=moves).map(|number| (format!("m{number}"), title(number))));
        story
    }

    fn halves(&mut self, number: u32, halves: u32) {
        let move_id = format!("m{number}");
        self.tell(RunEventBody::Isolation {
            effect_id: effect(&move_id),
            move_id: move_id.clone(),
            class: IsolationClass::EmulatedVm,
            fallback: None,
        });
        for half in 0..=halves {
            let round = half.max(1).div_ceil(2);
            let status = match (half, half % 2) {
                (0, _) => RoundStatus::CriticResponding,
                (_, 1) => RoundStatus::CriticResponded,
                _ => RoundStatus::DmResponded,
            };
            if half > 0 && half % 2 == 0 {
                for (member, stance) in [
                    ("D1", DebateStance::Hold),
                    ("D2", DebateStance::Partial),
                    ("D3", DebateStance::Concede),
                ] {
                    let id = format!("{move_id}/round-{round}/{member}");
                    self.call(&id);
                    let stance = if round > 1 || member == "D1" { Some(stance) } else { None };
                    self.tell(RunEventBody::SandboxTurn {
                        effect_id: effect(&id),
                        move_id: move_id.clone(),
                        thread: member.to_owned(),
                        round,
                        role: member.to_owned(),
                        preview: "The filings show \u{1b}[2J a margin of 41.2%\n[F0:GrossMargin:FY2025], and that carries it.".to_owned(),
                        stance,
                        cites: Vec::new(),
                    });
                }
            }
            self.tell(RunEventBody::SandboxRound { move_id: move_id.clone(), round, status });
        }
    }

    fn score(&mut self, number: u32, score: u32, degraded: Vec<DebateDegradation>) {
        self.tell(RunEventBody::SandboxScored {
            move_id: format!("m{number}"),
            score,
            out_of: 120,
            breakdown: BTreeMap::new(),
            rounds_done: 10,
            degraded,
            key_objection: None,
            reasoning: BTreeMap::new(),
        });
    }

    fn hold(&mut self, number: u32) {
        self.tell(RunEventBody::ClaimChecked {
            effect_id: effect(&format!("m{number}/rewrite")),
            document: format!("m{number}.md"),
            numbers: 9,
            supported: 8,
            flagged: vec![RunFinding {
                rule: RuleId::new("claims.wrong-value"),
                severity: FindingSeverity::Escalate,
                subject: format!("m{number}"),
                message: "the sheet says 41.2%".to_owned(),
                evidence: Vec::new(),
            }],
            rewrite: false,
        });
    }
}

fn effect(id: &str) -> EffectId {
    id.parse().unwrap()
}

/// Fifteen debates in progress: some scored, one held back, one degraded, some not started.
fn middle() -> Story {
    let mut story = Story::up_to_debates(15, 10);
    story.hold(2);
    for number in 1..=12 {
        story.halves(number, if number <= 3 { 20 } else { 25 - 2 * number });
    }
    story.score(1, 97, Vec::new());
    story.score(2, 101, Vec::new());
    story.score(3, 64, vec![DebateDegradation::NeutralScore { decision_maker: "D2".to_owned() }]);
    story.call("m4/round-3/D1/ask-2");
    story
}

fn frame(columns: usize, rows: usize) -> FrameInput<'static> {
    FrameInput {
        columns,
        rows,
        elapsed: Duration::from_secs(372),
        quiet: Duration::ZERO,
        now_ms: 900_000,
        budget: Some(MicroUsd::new(1_070_000)),
        models: "anthropic/claude-haiku-5-5",
        received: None,
        status: const { &ConnectionStatus { queued: 0, outage: None } },
        notice: None,
    }
}

#[track_caller]
fn drawn(board: &ConsultProgress, frame: FrameInput<'_>) -> String {
    let lines = draw(board, frame);
    for line in &lines {
        assert!(line.columns() < frame.columns, "too wide: {}", line.plain());
        assert!(!line.plain().contains(['\u{1b}', '\n']), "{}", line.plain());
    }
    let fence = "─".repeat(frame.columns);
    let lines: Vec<String> = lines.iter().map(StyledLine::plain).collect();
    format!("{fence}\n{}\n{fence}", lines.join("\n"))
}

#[test]
fn the_progress_board_shows_fifteen_debates_at_80_columns() {
    assert_snapshot!(drawn(&middle().board, frame(80, 24)));
}

#[test]
fn the_progress_board_shows_fifteen_debates_at_120_columns() {
    assert_snapshot!(drawn(&middle().board, frame(120, 40)));
}

#[test]
fn the_progress_board_shows_the_agents_of_early_stages() {
    let mut story = Story::new(15, 10);
    story.layer(0);
    story.layer(1);
    for (id, persona) in [("F1", "Financial inference"), ("F2", "Trend inference")] {
        let (agent_id, persona) = (id.to_owned(), persona.to_owned());
        story.tell(RunEventBody::AgentStart { layer: 1, agent_id, persona });
    }
    story.call("F1");
    story.tell(RunEventBody::AgentComplete {
        layer: 1,
        agent_id: "F1".to_owned(),
        output: Some("F1.md".to_owned()),
        outputs: vec!["F1.md".to_owned()],
        titles: BTreeMap::new(),
    });
    assert_snapshot!(drawn(&story.board, frame(80, 24)));
}

#[test]
fn the_progress_board_says_why_an_answer_is_not_used() {
    let mut story = middle();
    let rejected = |id: &str, problem: &str| RunEventBody::OutputRejected {
        effect_id: effect(id),
        problems: vec![problem.to_owned()],
    };
    story.tell(rejected("F1", "too long"));
    assert!(
        drawn(&story.board, frame(100, 40))
            .contains("\n 1 answer rejected, last F1: too long; asking again\n")
    );
    let line = story.line(rejected("m2/score/D1", "score\nmissing"));
    assert_eq!(line.as_deref(), Some("m2/score/D1: answer rejected: score missing; asking again"));
    let shown = drawn(&story.board, frame(100, 40));
    let last = "\n 2 answers rejected, last m2/score/D1: score missing; asking again\n";
    assert!(shown.contains(last), "{shown}");
    // The answer to a repeated question.
    let line = story.line(rejected("m2/score/D1/ask-2", "score missing"));
    assert_eq!(line.as_deref(), Some("m2/score/D1/ask-2: answer rejected: score missing"));
}

#[test]
fn small_terminals_get_one_line() {
    let board = middle().board;
    assert_snapshot!([drawn(&board, frame(80, 10)), drawn(&board, frame(40, 50))].join("\n"));
}

#[test]
fn a_notice_replaces_the_last_message_of_the_progress_board() {
    let notice = FrameInput { notice: Some("pausing: waiting for answers"), ..frame(80, 24) };
    let shown = drawn(&middle().board, notice);
    assert!(shown.contains("\npausing: waiting for answers\n"), "{shown}");
    let small = drawn(&middle().board, FrameInput { rows: 5, ..notice });
    assert!(small.contains("\npausing: waiting for answers\n"), "{small}");
}

#[test]
fn the_progress_board_says_how_long_it_waits_for_a_slow_model() {
    let quiet = |seconds| FrameInput { quiet: Duration::from_secs(seconds), ..frame(100, 40) };
    let mut story = middle();
    assert!(!drawn(&story.board, quiet(9)).contains("waiting"));
    let shown = drawn(&story.board, quiet(45));
    assert!(shown.contains(" · waiting 45 s for an answer"), "{shown}");
    let small = drawn(&story.board, FrameInput { rows: 5, ..quiet(45) });
    assert!(small.contains(" · waiting 45 s for an answer"), "{small}");
    let arriving = FrameInput { received: Some("tokens received: about 12"), ..quiet(45) };
    let shown = drawn(&story.board, arriving);
    assert!(shown.contains("\nwaiting 45 s for an answer, tokens received: about 12"), "{shown}");
    story.tell(RunEventBody::RunCancelled);
    assert!(!drawn(&story.board, quiet(45)).contains("waiting"));
}

#[test]
fn the_progress_board_names_a_provider_that_does_not_answer_and_queued_calls() {
    let outage = ProviderOutage {
        model: "lab/small".parse().unwrap(),
        kind: FailureKind::Overloaded,
        lasted: Duration::from_secs(34),
    };
    let status = ConnectionStatus { queued: 12, outage: Some(outage) };
    let frame = FrameInput { status: &status, ..frame(100, 40) };
    let mut story = middle();
    let shown = drawn(&story.board, frame);
    let message = "\nlab/small has not answered for 34 s (overloaded); trying again\n";
    assert!(shown.contains(message), "{shown}");
    assert!(shown.contains(" · 12 calls queued"), "{shown}");
    let small = drawn(&story.board, FrameInput { rows: 5, ..frame });
    assert!(small.contains(message), "{small}");
    let pausing = FrameInput { notice: Some("pausing"), ..frame };
    assert!(drawn(&story.board, pausing).contains("\npausing\n"));
    story.tell(RunEventBody::RunCancelled);
    let ended = drawn(&story.board, frame);
    assert!(!ended.contains("trying again") && !ended.contains("queued"), "{ended}");
}

#[test]
fn the_finished_progress_board_shows_the_legend_and_no_time_left() {
    let mut story = middle();
    story.tell(RunEventBody::PipelineComplete {
        verdict: moothall_core::RunVerdict::Pass,
        recommended: vec!["m1".to_owned()],
        other: Vec::new(),
        close_calls: Vec::new(),
    });
    let shown = drawn(&story.board, frame(80, 24));
    assert!(shown.contains("● holds") && !shown.contains(" left"), "{shown}");
}

#[test]
fn colours_do_not_change_the_width_of_the_progress_board() {
    let line = draw(&middle().board, frame(80, 24)).remove(2);
    assert!(line.painted().contains('\u{1b}'));
    assert_eq!(anstream::adapter::strip_str(&line.painted()).to_string().trim_end(), line.plain());
}

#[test]
fn the_time_left_is_estimated_from_the_speed_of_the_debates() {
    let mut story = Story::up_to_debates(1, 10);
    assert_eq!(story.board.remaining_ms(0), None);
    for number in 1..=20 {
        story.call(&format!("m1/round-{number}/D1"));
    }
    // 27 of 68 calls are done, 20 of them in the debate, at one a second.
    let begun_ms = story.seq * 1000 - 20_000;
    assert_eq!(story.board.remaining_ms(begun_ms + 20_000), Some(41_000));
    story.board.mark_resumed(2_000_000);
    assert_eq!(story.board.remaining_ms(2_100_000), None);
}

#[test]
fn displayed_costs_are_rounded_up_to_cents_unless_small() {
    let words =
        [0, 125, 9_999, 10_000, 10_001, 1_070_000].map(|micros| cents(MicroUsd::new(micros)));
    assert_eq!(words, ["$0.00", "$0.000125", "$0.009999", "$0.01", "$0.02", "$1.07"]);
    assert_eq!([999, 12_345, 4_100_000].map(short_number), ["999", "12 k", "4.1 M"]);
}
