//! A small debate, for tests of guests and sandboxes.

use moothall_core::consult::board;
use moothall_core::debate::{CallSettings, DebateInput};

pub(crate) fn debate_input() -> DebateInput {
    let board = board();
    DebateInput {
        move_id: "m1".to_owned(),
        company: "Helix Instruments".to_owned(),
        dossier: "Revenue 412".into(),
        move_markdown: "# m1: Sell more".into(),
        machine_findings: Vec::new(),
        rounds: 2,
        critic: board.critic,
        decision_makers: board.decision_makers,
        metrics: board.metrics,
        critic_model: "demo".parse().unwrap(),
        decision_maker_model: "demo".parse().unwrap(),
        calls: CallSettings::default(),
        prompts: moothall_core::OwnTexts::default(),
        scoring: moothall_core::debate::DebateScoring::default(),
        calculations: None,
    }
}
