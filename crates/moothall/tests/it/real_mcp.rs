//! A program written by an agent, in a real sandbox.

use serde_json::json;

use crate::mcp_client::{Client, Era, NOTHING};
use crate::real_sandbox::{until_idle_sandbox_is_used, until_no_sandbox, world};

#[test]
fn an_mcp_agent_runs_a_program_in_a_sandbox_of_another_process() {
    let world = world().with("MOOTHALL_ISOLATION__ENGINE", "runsc");
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/secret.txt", "held back");
    let mut client = Client::start(&world, Era::Modern, NOTHING, &["--tools", "all"]);
    let program = format!(
        "import os, sys\nprint(sys.argv[1:], sys.stdin.read(), os.path.exists({:?}))\nsys.exit(3)\n",
        world.path("ws/secret.txt")
    );
    let asked = json!({ "program": program, "args": ["--isolation=none"], "stdin": "typed" });
    let told = client.does("sandbox_run", &asked);
    assert_eq!(
        told,
        json!({
            "exit": "exited",
            "code": 3,
            "stdout": "['--isolation=none'] typed False\n",
            "stderr": "",
            "isolation": "user-kernel",
        })
    );
}

#[test]
fn an_mcp_server_keeps_a_sandbox_ready_between_calls_and_ends_it_when_it_stops() {
    let world = world().with("MOOTHALL_ISOLATION__ENGINE", "runsc");
    fs_err::create_dir_all(world.path("ws")).unwrap();
    let mut client = Client::start(&world, Era::Modern, NOTHING, &["--tools", "all"]);
    until_idle_sandbox_is_used(&world, "runsc", || {
        let told = client.does("sandbox_run", &json!({ "program": "print(3)\n" }));
        assert_eq!(told["stdout"], "3\n", "{told}");
    });
    drop(client);
    // The process that keeps it notices the end of the server, and ends afterwards.
    until_no_sandbox(&world, "runsc");
}
