//! The journal formats of `moothall edit`; those of other workflows are in `formats.rs`.

use std::collections::BTreeMap;

use insta::assert_json_snapshot;
use moothall_core::drafts::{DraftId, DraftState, JournalFinding, RelPath};
use moothall_core::edit::{
    DraftCall, DraftReply, EditInput, EditProposal, EditResult, FileText, SubmissionStatus,
};
use moothall_core::gate::{GateAction, GateRule};
use moothall_core::{Conclusion, Effect, EffectResult};
use serde_json::json;

use crate::formats::{model, round_trip};

#[test]
fn edit_effects_and_results_keep_their_serialized_form() {
    let path = RelPath::parse("src/a.py").unwrap();
    let (draft, model) = (DraftId::new([7; 16]), model());
    let files = BTreeMap::from([
        (path.clone(), Some("a = 2\n".to_owned())),
        (RelPath::parse("b.py").unwrap(), None),
    ]);
    let finding = JournalFinding {
        rule: GateRule::PathProtected,
        action: GateAction::Escalate,
        path: path.clone(),
        line: Some(3),
        message: "protected path".to_owned(),
    };
    let input =
        EditInput { files: vec![path.clone()], wait_s: 60, ..EditInput::new("mend it", model) };
    round_trip(&input);
    let calls = [
        DraftCall::Files,
        DraftCall::Read { paths: vec![path.clone()] },
        DraftCall::Submit(EditProposal { summary: "mends it".to_owned(), files }),
        DraftCall::Wait { drafts: vec![draft], seconds: 60 },
    ];
    let calls = calls.map(|call| Effect::Draft(Box::new(call)));
    let hashes = calls.each_ref().map(|call| call.request_hash().unwrap());
    calls.iter().for_each(round_trip);
    let replies = [
        DraftReply::Files { paths: vec![path.clone()] },
        DraftReply::Read {
            files: vec![FileText { path: path.clone(), text: "a = 1\n".to_owned() }],
            refused: vec!["b.py: it may hold a credential".to_owned()],
        },
        DraftReply::Submitted(SubmissionStatus {
            drafts: vec![draft],
            state: DraftState::Escalated,
            findings: vec![finding],
            words: vec!["check `tests`: boom".to_owned()],
            comment: Some("keep the tests".to_owned()),
            comments: Vec::new(),
        }),
        DraftReply::Refused { why: "no".to_owned() },
        DraftReply::Failed { why: "disk full".to_owned() },
    ];
    let replies = replies.map(|reply| EffectResult::Drafted(Box::new(reply)));
    replies.iter().for_each(round_trip);
    let edited = EditResult {
        attempts: 2,
        state: Some(DraftState::Applied),
        drafts: vec![draft],
        paths: vec![path],
        summary: "mends it".to_owned(),
    };
    let conclusion = Conclusion::Edited(Box::new(edited));
    round_trip(&conclusion);
    assert_json_snapshot!(json!({
        "input": input, "calls": calls, "hashes": hashes, "replies": replies, "conclusion": conclusion,
    }));
}
