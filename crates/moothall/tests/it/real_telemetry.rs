//! The program contacts no one but the model and data sources that the user configured. `strace` records every
//! address it connects or sends to.

use std::collections::BTreeSet;
use std::process::Command;

use moothall_testkit::FakeProvider;

use crate::world::World;

/// Runs the program under strace; returns its exit code and the internet addresses it contacted.
fn contacted(world: &World, arguments: &[&str]) -> (Option<i32>, BTreeSet<String>) {
    let trace = world.root().join("trace");
    let program = world.command(arguments);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o"]).arg(&trace);
    strace.arg(program.get_program()).args(program.get_args());
    strace.current_dir(program.get_current_dir().unwrap()).env_clear();
    strace.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap_or_else(|error| panic!("strace is needed: {error}"));
    let trace = fs_err::read_to_string(trace).unwrap();
    let addresses = trace.lines().filter_map(address).collect();
    (output.status.code(), addresses)
}

/// The address in a line such as `7 connect(9, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")}, 16)`.
fn address(line: &str) -> Option<String> {
    let start = ["inet_addr(\"", "inet_pton(AF_INET6, \""]
        .iter()
        .find_map(|marker| Some(line.find(marker)? + marker.len()))?;
    line[start..].split('"').next().map(str::to_owned)
}

#[test]
fn a_demo_consultation_contacts_no_other_machine() {
    let world = World::new();
    let own = BTreeSet::from(["127.0.0.1".to_owned()]);
    let consult = [
        "consult",
        "HLXI",
        "--verdict",
        "off",
        "--model",
        "demo",
        "--isolation",
        "none",
        "--rounds",
        "1",
        "--yes",
    ];
    let (code, addresses) = contacted(&world, &consult);
    assert_eq!((code, addresses.difference(&own).count()), (Some(0), 0), "{addresses:?}");
    for arguments in [
        &["runs"][..],
        &["models"],
        &["facts", "HLXI"],
        &["ask", "--model", "demo", "hello"],
        &["config", "show"],
        &["--help"],
    ] {
        let (code, addresses) = contacted(&world, arguments);
        assert_eq!((code, addresses.difference(&own).count()), (Some(0), 0), "{addresses:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_call_contacts_the_configured_server_only() {
    let provider = FakeProvider::start_on("127.0.0.2:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/v1", provider.address());
    let world = World::new();
    let ask = ["ask", "--model", "lab/m", "--base-url", &url, "hello"];
    let (_, addresses) = contacted(&world, &ask);
    assert_eq!(addresses, BTreeSet::from(["127.0.0.2".to_owned()]));
}
