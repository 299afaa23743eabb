use std::process::{Command, Stdio};
use std::time::Duration;

use super::spawn;
use crate::ProcessId;

fn sleeper() -> Command {
    // Like the children of sandboxes, it asks to be killed when the thread that started it ends.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "sleep", "600"]).stdin(Stdio::null());
    command
}

#[tokio::test]
async fn waits_for_a_child_that_ends_by_itself() {
    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]);
    let mut process = spawn(command).await.unwrap();
    assert_eq!(process.wait().await.unwrap().and_then(|status| status.code()), Some(7));
    assert_eq!(process.wait().await.unwrap(), None, "it is gone");
}

#[tokio::test]
async fn dropping_a_process_ends_it_and_leaves_no_zombie() {
    let process = spawn(sleeper()).await.unwrap();
    let pid = process.id();
    drop(process);
    let gone = async {
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

#[tokio::test]
async fn a_child_process_outlives_the_runtime_that_started_it() {
    // Started in a runtime whose threads are gone by the time of the check.
    let process = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { tokio::spawn(spawn(sleeper())).await.unwrap().unwrap() })
    })
    .join()
    .unwrap();
    let pid = i32::try_from(process.id()).unwrap();
    assert!(ProcessId::of(pid).is_some());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let error = spawn(Command::new("/nowhere/to/be/found")).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
