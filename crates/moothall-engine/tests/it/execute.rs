//! Executions read input files by hash and store output files as artifacts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use moothall_core::sandbox::{
    ExecuteRequest, FileRef, GuestPath, SandboxExecution, SandboxFailure, SandboxFailureKind,
    SandboxLabels,
};
use moothall_core::{Effect, EffectId, EffectResult, Sha256Hex};
use moothall_engine::{EffectPerformer, SandboxPerformer};
use moothall_sandbox::{ExecuteFuture, ExecutionJob, ExecutionOutput, ProgramExecutor};
use moothall_store::MAX_ARTIFACT_BYTES;

use crate::support::{Counting, World, world};
use crate::world::execution;

/// The labels and inputs passed to the executor.
type Given = (SandboxLabels, BTreeMap<GuestPath, Vec<u8>>);

/// Produces the same files each time and records its inputs.
#[derive(Debug, Default)]
struct Leaving {
    files: BTreeMap<GuestPath, Vec<u8>>,
    failure: Option<SandboxFailure>,
    given: Mutex<Vec<Given>>,
}

impl ProgramExecutor for Leaving {
    fn execute<'a>(&'a self, job: ExecutionJob<'a>) -> ExecuteFuture<'a> {
        Box::pin(async move {
            self.given.lock().unwrap().push((job.labels.clone(), job.inputs));
            match &self.failure {
                Some(failure) => Err(failure.clone()),
                None => Ok(ExecutionOutput { execution: execution(), files: self.files.clone() }),
            }
        })
    }
}

fn path(text: &str) -> GuestPath {
    text.parse().unwrap()
}

fn file(bytes: &[u8]) -> FileRef {
    FileRef { sha256: Sha256Hex::of(bytes), bytes: bytes.len() as u64 }
}

fn request(inputs: BTreeMap<GuestPath, FileRef>) -> Effect {
    let request = ExecuteRequest::python("python", path("main.py"), "print('done')");
    Effect::Execute(Box::new(ExecuteRequest { inputs, collect: true, ..request }))
}

async fn perform(world: &World, executor: &Arc<Leaving>, effect: &Effect) -> EffectResult {
    let id: EffectId = "attempt-1/execute".parse().unwrap();
    let models = Arc::new(Counting::default());
    let performer = SandboxPerformer::new(
        models.clone(),
        executor.clone(),
        Arc::clone(&world.store),
        world.run_id.clone(),
    );
    let performed = performer.perform(&id, effect).await;
    assert!(models.asked.lock().unwrap().is_empty());
    performed.result
}

#[tokio::test]
async fn an_execution_reads_inputs_from_and_writes_outputs_to_the_store() {
    let world = world().await;
    let input = b"a,b\n1,2\n";
    world.store.keep_artifact(&world.run_id, input).await.unwrap();
    let chart = b"\x89PNG".to_vec();
    let files = BTreeMap::from([
        (path("chart.png"), chart.clone()),
        (path("huge.bin"), vec![0; MAX_ARTIFACT_BYTES + 1]),
    ]);
    let executor = Arc::new(Leaving { files, ..Leaving::default() });
    let effect = request(BTreeMap::from([(path("data.csv"), file(input))]));

    let expected = SandboxExecution {
        files: BTreeMap::from([(path("chart.png"), file(&chart))]),
        left_behind: vec!["huge.bin: larger than 16777216 bytes".to_owned()],
        ..execution()
    };
    let result = perform(&world, &executor, &effect).await;
    assert_eq!(result, EffectResult::Executed(Box::new(expected)));
    let kept = world.store.artifact(&world.run_id, &Sha256Hex::of(&chart)).await.unwrap();
    assert_eq!(kept, Some(chart));
    let (labels, inputs) = executor.given.lock().unwrap().pop().unwrap();
    assert_eq!(inputs, BTreeMap::from([(path("data.csv"), input.to_vec())]));
    let id = "attempt-1/execute".parse().unwrap();
    assert_eq!(labels, SandboxLabels::of_effect(&world.run_id, &id).with("stage", "program"));
}

#[tokio::test]
async fn an_execution_with_an_unstored_input_fails_without_running() {
    let world = world().await;
    let executor = Arc::new(Leaving::default());
    let effect = request(BTreeMap::from([(path("data.csv"), file(b"never kept"))]));
    let expected = SandboxFailure {
        kind: SandboxFailureKind::Request,
        detail: "data.csv is not among the files of the run".to_owned(),
    };
    let result = perform(&world, &executor, &effect).await;
    assert_eq!(result, EffectResult::NotExecuted(expected));
    assert!(executor.given.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_sandbox_failure_is_reported_unchanged() {
    let world = world().await;
    let failure = SandboxFailure {
        kind: SandboxFailureKind::NoEngine,
        detail: "no sandbox on this host".to_owned(),
    };
    let executor = Arc::new(Leaving { failure: Some(failure.clone()), ..Leaving::default() });
    let result = perform(&world, &executor, &request(BTreeMap::new())).await;
    assert_eq!(result, EffectResult::NotExecuted(failure));
}

#[tokio::test]
async fn the_sandbox_performer_forwards_model_calls() {
    let world = world().await;
    let models = Arc::new(Counting { costs: true, ..Counting::default() });
    let performer = SandboxPerformer::new(
        models.clone(),
        Arc::new(Leaving::default()),
        Arc::clone(&world.store),
        world.run_id.clone(),
    );
    let request = moothall_core::model::ModelRequest::ask("demo".parse().unwrap(), "Hm?", 5);
    let effect = Effect::CallModel(Box::new(request));
    performer.perform(&"attempt-1/generate".parse().unwrap(), &effect).await;
    assert_eq!(*models.asked.lock().unwrap(), ["attempt-1/generate"]);
    assert_eq!(performer.spent(), models.spent());
}
