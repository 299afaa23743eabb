//! A workflow with a question for a person: no answer is made up, and the given answer is
//! journaled.

use std::collections::BTreeMap;
use std::sync::Arc;

use moothall_core::consult::{MoveReview, ReviewAction, ReviewChange, ReviewQuestion};
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, Outcome, RunEvent, RunEventBody, RunVerdict, Step,
    UnexpectedResult, Workflow,
};
use moothall_engine::{EffectPerformer as _, ModelPerformer, RunDriver, RunExit, RunPause};
use moothall_models::settings::RetrySettings;
use moothall_models::{
    Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger,
};
use moothall_store::RunState;

use crate::support::{Counting, World, world};

/// Asks one question and ends with its answer.
struct Asks;

impl Workflow for Asks {
    fn start(&mut self) -> Step {
        let question = ReviewQuestion::ReviewMoves { moves: Vec::new() };
        let started = RunEventBody::RunStarted { workflow: "asks".to_owned() };
        Step {
            perform: vec![("moves/review".parse().unwrap(), Effect::AskPerson(Box::new(question)))],
            publish: vec![RunEvent::of_run(started)],
            outcome: None,
        }
    }

    fn resume(&mut self, _: &EffectId, result: EffectResult) -> Result<Step, UnexpectedResult> {
        let text = MoveReview::of(&result).unwrap().changes.len().to_string();
        let outcome = Outcome::new(Vec::new(), Conclusion::Answered { text, value: None });
        let finished = RunEventBody::RunFinished { verdict: RunVerdict::Pass };
        Ok(Step {
            perform: Vec::new(),
            publish: vec![RunEvent::of_run(finished)],
            outcome: Some(outcome),
        })
    }
}

async fn drive(world: &World, said: Option<MoveReview>) -> RunExit {
    let performer = Arc::new(Counting::default());
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    let ended = driver.person_review(said).drive(&mut Asks).await.unwrap();
    assert!(performer.asked.lock().unwrap().is_empty(), "a performer was asked for a person");
    ended
}

#[tokio::test]
async fn performers_do_not_answer_review_questions() {
    let gateway = Gateway::new(GatewayOptions {
        catalog: Catalog::built_in().unwrap(),
        keys: BTreeMap::new(),
        retry: RetrySettings::default(),
        recording: RecordingMode::Off,
        connections: ProviderConnections::default(),
    });
    let models = ModelPerformer::new(Arc::new(gateway), Arc::new(RunLedger::unlimited()));
    let question = ReviewQuestion::ReviewMoves { moves: Vec::new() };
    let effect = Effect::AskPerson(Box::new(question));
    let performed = models.perform(&"moves/review".parse().unwrap(), &effect).await;
    assert_eq!(performed.result, EffectResult::NotPerformed);
}

#[tokio::test]
async fn an_unanswered_review_question_pauses_the_run_every_time() {
    let world = world().await;
    let words = "0 moves need review before the debates".to_owned();
    for pause in 1..=2 {
        assert_eq!(drive(&world, None).await, RunExit::Paused(RunPause::Question(words.clone())));
        let row = world.store.run(&world.run_id).await.unwrap().unwrap();
        assert_eq!(row.state, RunState::Paused);
        assert!(world.keys().await.contains(&format!("run:run_paused:{pause}")));
        assert!(world.store.journal(&world.run_id).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_review_answer_is_journaled_and_not_requested_again() {
    let world = world().await;
    drive(&world, None).await;
    let what = ReviewAction::Veto { move_id: "m1".to_owned(), why: String::new() };
    let review =
        MoveReview { changes: vec![ReviewChange { by: "Ada".to_owned(), at_ms: 1, what }] };
    let RunExit::Done(outcome) = drive(&world, Some(review.clone())).await else {
        panic!("it ends")
    };
    assert_eq!(outcome.conclusion, Conclusion::Answered { text: "1".to_owned(), value: None });
    let journal = world.store.journal(&world.run_id).await.unwrap();
    let kept: Vec<&EffectResult> = journal.values().map(|entry| &entry.result).collect();
    assert_eq!(kept, [&EffectResult::PersonSaid(Box::new(review))]);
}
