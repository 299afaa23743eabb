//! The real workflow, stopped at any point and resumed: journaled effects are not repeated, and the
//! result is the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use moothall_core::program::{OutputExpectation, ProgramContract, ProgramInput};
use moothall_core::sandbox::{CapturedOutput, ExecutionExit};
use moothall_core::view::RunCalls;
use moothall_core::{Conclusion, Effect, EffectId, ProgramSpec, RunSettings, RunSpec};
use moothall_engine::{
    EffectPerformer, ModelPerformer, PerformFuture, RunDriver, RunExit, RunRecord,
    SandboxPerformer, update_calls, workflow_of,
};
use moothall_sandbox::{ExecuteFuture, ExecutionJob, ExecutionOutput, ProgramExecutor};

use moothall_models::settings::RetrySettings;
use moothall_models::{
    Catalog, Gateway, GatewayOptions, ProviderConnections, RecordingMode, RunLedger,
    ScriptedBackend, said,
};

use crate::support::{World, world, world_with};
use crate::world::execution;

/// Model calls and executions of an uninterrupted run, in order.
const WHOLE: [&str; 5] = [
    "attempt-1/generate",
    "attempt-1/execute",
    "attempt-1/critique",
    "attempt-2/generate",
    "attempt-2/execute",
];

/// Executes programs by their text: the first one written fails.
#[derive(Debug)]
struct ByText;

impl ProgramExecutor for ByText {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            let fails = job.request.sources.values().any(|text| text.contains("1 / 0"));
            let mut execution = execution();
            execution.exit = ExecutionExit::Exited { code: i32::from(fails) };
            let output = |text: &str| CapturedOutput { text: text.to_owned(), truncated: false };
            execution.stdout = output(if fails { "" } else { "3\n" });
            execution.stderr =
                output(if fails { "ZeroDivisionError: division by zero\n" } else { "" });
            Ok(ExecutionOutput { execution, files: BTreeMap::new() })
        })
    }
}

/// Never completes the effect with this number, counted from 0.
#[derive(Debug)]
struct Stopping {
    performer: SandboxPerformer,
    stop_at: usize,
    asked: Mutex<Vec<String>>,
}

impl EffectPerformer for Stopping {
    fn perform<'a>(&'a self, id: &'a EffectId, effect: &'a Effect) -> PerformFuture<'a> {
        Box::pin(async move {
            let number = {
                let mut asked = self.asked.lock().unwrap();
                asked.push(id.to_string());
                asked.len() - 1
            };
            if number == self.stop_at {
                std::future::pending::<()>().await;
            }
            self.performer.perform(id, effect).await
        })
    }
}

fn performer(world: &World, stop_at: usize) -> Arc<Stopping> {
    let answers = ScriptedBackend::function(|request| {
        let lessons = request.turns.len() > 1;
        Ok(said(match request.purpose {
            moothall_core::model::CallPurpose::Critique => "It divides by zero.",
            _ if lessons => "```python\nprint(3)\n```",
            _ => "```python\nprint(1 / 0)\n```",
        }))
    });
    let gateway = Gateway::new(GatewayOptions {
        catalog: Catalog::built_in().unwrap(),
        keys: BTreeMap::new(),
        retry: RetrySettings::default(),
        recording: RecordingMode::Off,
        connections: ProviderConnections::default(),
    })
    .with_backend("openai", Arc::new(answers));
    let models = ModelPerformer::new(Arc::new(gateway), Arc::new(RunLedger::unlimited()));
    let performer = SandboxPerformer::new(
        Arc::new(models),
        Arc::new(ByText),
        Arc::clone(&world.store),
        world.run_id.clone(),
    );
    Arc::new(Stopping { performer, stop_at, asked: Mutex::default() })
}

fn spec() -> RunSpec {
    let mut input = ProgramInput::new(
        "print 3",
        "openai/gpt-4.1-mini".parse::<moothall_core::model::ModelName>().unwrap(),
        "python",
    );
    let expect = OutputExpectation::Text { text: "3".to_owned() };
    input.contract = ProgramContract { expect: Some(expect), ..ProgramContract::default() };
    RunSpec::Program(ProgramSpec { input, settings: RunSettings::default() })
}

async fn drive(world: &World, performer: &Arc<Stopping>) -> RunExit {
    let driver = RunDriver::new(Arc::clone(&world.store), performer.clone(), world.run_id.clone());
    driver.drive(&mut *workflow_of(&spec()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn a_program_run_resumes_from_any_step() {
    let whole = world().await;
    let undisturbed = performer(&whole, usize::MAX);
    let end = drive(&whole, &undisturbed).await;
    let RunExit::Done(outcome) = &end else { panic!("{end:?}") };
    assert!(matches!(outcome.conclusion, Conclusion::Passed(_)), "{outcome:?}");
    assert_eq!(*undisturbed.asked.lock().unwrap(), WHOLE);

    for stop_at in 0..WHOLE.len() {
        let world = world().await;
        let first = performer(&world, stop_at);
        let stuck = async {
            while first.asked.lock().unwrap().len() <= stop_at {
                tokio::task::yield_now().await;
            }
            world.keeps(stop_at).await;
        };
        tokio::select! {
            end = drive(&world, &first) => panic!("it was not stopped: {end:?}"),
            () = stuck => {}
        }
        let second = performer(&world, usize::MAX);
        assert_eq!(drive(&world, &second).await, end);
        assert_eq!(*second.asked.lock().unwrap(), WHOLE[stop_at..]);
        assert_eq!(world.keys().await, whole.keys().await);
    }
}

#[tokio::test]
async fn every_model_call_of_a_run_has_its_prompt_and_its_answer() {
    let world = world_with(spec().into()).await;
    drive(&world, &performer(&world, usize::MAX)).await;
    let record = RunRecord::read(&*world.store, &world.run_id).await.unwrap();
    let calls = record.calls();
    let mut followed = RunCalls::default();
    update_calls(&*world.store, &world.run_id, &mut followed).await.unwrap();
    assert_eq!(followed, calls);
    let mut found = Vec::new();
    for call in &calls.calls {
        let detail = record.call_detail(&call.call).unwrap();
        assert_eq!((&detail.call, detail.answer.as_deref()), (call, record.answer(&call.call)));
        assert_eq!(detail.prompt_problem, None);
        assert!(serde_json::to_string(&detail.prompt).unwrap().contains("print 3"), "{detail:?}");
        found.push((call.call.to_string(), detail.answer.unwrap()));
    }
    let expected = [
        ("attempt-1/generate", "```python\nprint(1 / 0)\n```"),
        ("attempt-1/critique", "It divides by zero."),
        ("attempt-2/generate", "```python\nprint(3)\n```"),
    ];
    assert_eq!(found, expected.map(|(id, answer)| (id.to_owned(), answer.to_owned())));
    let execution: EffectId = "attempt-1/execute".parse().unwrap();
    assert_eq!(record.answer(&execution), None);
    assert_eq!(record.call_detail(&execution), None);
}
