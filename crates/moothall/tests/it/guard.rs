//! `moothall guard` with shell scripts as agents.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{Ran, World, signal};

/// A git repository as workspace, and a file next to it that no agent may reach.
pub(crate) fn world() -> World {
    let world = World::new().with("USER", "ada");
    for folder in ["ws/src", "ws/.git/hooks", "ws/.git/refs", "ws/.git/objects"] {
        fs_err::create_dir_all(world.path(folder)).unwrap();
    }
    let code: String = (0..40).map(|at| format!("def f{at}():\n    return {at}\n\n\n")).collect();
    world.write("ws/src/app.py", "import sys\n\n\ndef main():\n    print(sys.argv)\n");
    world.write("ws/src/big.py", &code);
    world.write("ws/notes.txt", "one\n");
    world.write("ws/.gitignore", "*.log\nbuild/\n");
    world.write("ws/.git/HEAD", "ref: refs/heads/main\n");
    world.write("ws/.git/config", "[core]\n\tbare = false\n");
    world.write("outside.txt", "outside\n");
    world
}

pub(crate) fn guard_args<'a>(flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    let mut args = vec!["guard", "--workspace", "ws", "--json"];
    args.extend(flags);
    args.extend(["--", "sh", "-c", script]);
    args
}

/// Runs a script as an agent.
fn guard(world: &World, flags: &[&str], script: &str) -> (Ran, Value) {
    let ran = world.run(&guard_args(flags, script));
    let value = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    (ran, value)
}

/// Runs a script in the last copy.
fn resume(world: &World, script: &str) -> Ran {
    world.run(&["guard", "resume", "--workspace", "ws", "--json", "--", "sh", "-c", script])
}

pub(crate) fn run(world: &World, args: &[&str]) -> Ran {
    let mut all = args.to_vec();
    all.extend(["--workspace", "ws"]);
    world.run(&all)
}

/// The outcome of each file.
pub(crate) fn outcomes(record: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let files = record["result"]["files"].as_array().unwrap();
    files.iter().map(|file| (text(&file["path"]), text(&file["outcome"]))).collect()
}

fn rules(record: &Value) -> Vec<String> {
    let files = record["result"]["files"].as_array().unwrap().iter();
    let of_files = files.flat_map(|file| file["findings"].as_array().unwrap());
    let all = of_files.chain(record["result"]["findings"].as_array().unwrap());
    all.map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn check_outcomes(ran: &Ran, record: &Value, code: i32, expected: &[(&str, &str)]) {
    assert_eq!(ran.code, Some(code), "{ran}");
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(path, outcome)| ((*path).to_owned(), (*outcome).to_owned()))
        .collect();
    assert_eq!(outcomes(record), expected, "{ran}");
}

#[test]
fn an_accepted_edit_is_applied_and_the_copy_is_removed() {
    let world = world();
    let script = "echo two >> notes.txt; printf 'def g():\\n    return 1\\n' > src/new.py";
    let (ran, record) = guard(&world, &[], script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied"), ("src/new.py", "applied")]);
    assert_eq!(world.read("ws/notes.txt"), "one\ntwo\n");
    assert_eq!(world.read("ws/src/new.py"), "def g():\n    return 1\n");
    assert_eq!(
        (&record["has_copy"], &record["end"]),
        (&false.into(), &serde_json::json!({ "exited": 0 }))
    );
    // The audit log has it.
    let audit = run(&world, &["audit", "verify"]);
    assert_eq!(audit.code, Some(0), "{audit}");
}

#[test]
fn an_agent_without_changes_ends_with_success() {
    let (ran, record) = guard(&world(), &[], "true");
    check_outcomes(&ran, &record, 0, &[]);
}

#[test]
fn the_exit_code_of_the_agent_decides_nothing() {
    let world = world();
    let (ran, record) = guard(&world, &[], "echo two >> notes.txt; exit 7");
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["end"]["exited"], 7);
}

#[test]
fn bad_changes_are_not_applied() {
    let check = |script: &str, code: i32, path: &str, outcome: &str, rule: &str| {
        let world = world();
        let before = snapshot(&world.path("ws"));
        let (ran, record) = guard(&world, &[], script);
        check_outcomes(&ran, &record, code, &[(path, outcome)]);
        assert!(rules(&record).iter().any(|one| one == rule), "{rule}: {ran}");
        assert_eq!(snapshot(&world.path("ws")), before, "{script}");
    };
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    check(
        &format!("echo 'KEY = \"{key}\"' > src/keys.py"),
        1,
        "src/keys.py",
        "rejected",
        "secret.specific",
    );
    check("echo '# gone' > src/big.py", 3, "src/big.py", "needs_review", "diff.gutted");
    check(
        "mkdir -p .moothall; echo 'version = 1' > .moothall/policy.toml",
        1,
        ".moothall/policy.toml",
        "left",
        "policy.changed",
    );
    check("ln -s ../../outside.txt src/link", 1, "src/link", "rejected", "file.link_outside");
    check("rm src/app.py", 3, "src/app.py", "needs_review", "file.delete");
    check("printf '\\000\\001' > src/x.bin", 1, "src/x.bin", "rejected", "content.nul");
    check("echo 'all: evil' > Makefile", 3, "Makefile", "needs_review", "path.protected");
}

/// Every file of a directory with its content.
fn snapshot(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match fs_err::symlink_metadata(&path).unwrap().is_dir() {
                true => folders.push(path),
                false => found.push((path.display().to_string(), fs_err::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_file_that_needs_a_person_waits_in_review_and_the_rest_is_applied() {
    let world = world();
    let (ran, record) = guard(&world, &[], "echo two >> notes.txt; echo 'all: build' > Makefile");
    check_outcomes(&ran, &record, 3, &[("Makefile", "needs_review"), ("notes.txt", "applied")]);
    assert_eq!(world.read("ws/notes.txt"), "one\ntwo\n");
    let draft = record["result"]["files"][0]["draft"].as_str().unwrap();
    let shown = run(&world, &["review", "show", draft, "--json"]).json();
    let seal = shown["seal"].as_str().unwrap();
    let approved = run(&world, &["review", "approve", draft, "--if-match", seal]);
    assert_eq!(approved.code, Some(0), "{approved}");
    assert_eq!(world.read("ws/Makefile"), "all: build\n");
}

#[test]
fn changed_hooks_and_settings_of_git_hold_everything_and_are_not_carried_over() {
    let world = world();
    let script = "echo 'echo evil' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
                  echo '[core] fsmonitor = evil' >> .git/config; echo two >> notes.txt";
    let (ran, record) = guard(&world, &[], script);
    check_outcomes(&ran, &record, 3, &[("notes.txt", "needs_review")]);
    assert!(rules(&record).contains(&"copy.git_settings".to_owned()), "{ran}");
    let settings = &record["result"]["git"]["settings"]["first"];
    assert_eq!(settings, &serde_json::json!([".git/config", ".git/hooks/pre-commit"]));
    assert!(!world.path("ws/.git/hooks/pre-commit").exists());
    assert_eq!(world.read("ws/.git/config"), "[core]\n\tbare = false\n");
    assert_eq!(world.read("ws/notes.txt"), "one\n");
}

#[test]
fn commits_stay_in_the_copy_and_their_files_are_judged() {
    let world = world();
    let script = "mkdir -p .git/objects/aa .git/refs/heads; echo x > .git/objects/aa/bb; \
                  echo abc > .git/refs/heads/main; echo x > .git/index; echo two >> notes.txt";
    let (ran, record) = guard(&world, &[], script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["result"]["git"]["history"]["count"], 3, "{ran}");
    assert!(!world.path("ws/.git/index").exists());
}

#[test]
fn ignored_files_and_build_output_are_not_carried_over() {
    let world = world();
    let script = "echo x > debug.log; mkdir -p build node_modules/x; echo x > build/a; \
                  echo x > node_modules/x/index.js; echo two >> notes.txt";
    let (ran, record) = guard(&world, &[], script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["result"]["ignored"]["count"], 3, "{ran}");
    assert!(!world.path("ws/debug.log").exists() && !world.path("ws/build").exists());
}

#[test]
fn an_agent_sees_and_writes_only_its_copy_home_and_temporary_directory() {
    let world = world();
    let home = world.root().join("home");
    fs_err::write(home.join("secret"), "s3cret").unwrap();
    let socket = world.root().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let script = format!(
        "try() {{ if eval \"$2\" >/dev/null 2>&1; then echo \"$1 yes\"; else echo \"$1 no\"; fi; }}
         {{ try writes-copy 'echo x > notes.txt'
         try writes-home 'echo x > \"$HOME/file\"'
         try writes-tmp 'echo x > \"$TMPDIR/file\" && echo x > /tmp/file'
         try runs-from-tmp 'cp /bin/true /tmp/true && /tmp/true'
         try reads-home '[ -e \"$HOME/secret\" ]'
         try reads-outside '[ -e {outside} ]'
         try reads-store '[ -e \"$HOME/.local\" ]'
         try reaches-socket '[ -e {socket} ]'
         echo x > {outside} || true
         try writes-usr 'echo x > /usr/moothall-test'
         try writes-etc 'echo x > /etc/moothall-test'
         try writes-root 'echo x > /moothall-test'
         try sees-host-processes '[ -e /proc/{parent}/root/etc ] && [ {parent} -gt 99999999 ]'
         try mounts 'mount -t tmpfs x /tmp'
         try leaves-view 'ls /proc/1/cwd/..'
         try key '[ -n \"$SECRET_KEY\" ]'
         try passed '[ \"$PASSED\" = yes ]'
         cat /proc/self/status | grep CapEff
         }} > result.txt",
        outside = world.path("outside.txt").display(),
        socket = socket.display(),
        parent = std::process::id(),
    );
    let world = world.with("SECRET_KEY", "k").with("PASSED", "yes");
    let (ran, record) = guard(&world, &["--env", "PASSED"], &script);
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(record["state"], "judged");
    let expected = "writes-copy yes\nwrites-home yes\nwrites-tmp yes\nruns-from-tmp yes\n\
                    reads-home no\nreads-outside no\nreads-store no\nreaches-socket no\n\
                    writes-usr no\nwrites-etc no\nwrites-root no\n\
                    sees-host-processes no\nmounts no\nleaves-view no\nkey no\npassed yes\n\
                    CapEff:\t0000000000000000\n";
    assert_eq!(world.read("ws/result.txt"), expected);
    assert_eq!(world.read("outside.txt"), "outside\n");
    assert!(!home.join("file").exists());
}

/// Regression: Landlock allows writes below the private home directory, also to what is mounted
/// there.
#[test]
fn a_readable_directory_below_the_home_directory_is_read_only() {
    let world = world();
    let tools = world.root().join("home/tools");
    fs_err::create_dir_all(tools.join("bin")).unwrap();
    fs_err::write(tools.join("file"), "tool\n").unwrap();
    let tools = tools.display().to_string();
    let path = format!("{tools}/bin:{}", std::env::var("PATH").unwrap());
    let world = world.with("PATH", &path);
    let script = "cat \"$HOME/tools/file\" >> notes.txt; echo evil > \"$HOME/tools/file\"; \
                  echo evil > \"$HOME/tools/bin/evil\"; chmod 777 \"$HOME/tools/bin\"; true";
    let (ran, record) = guard(&world, &["--read", &tools], script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(world.read("ws/notes.txt"), "one\ntool\n");
    assert_eq!(fs_err::read_to_string(format!("{tools}/file")).unwrap(), "tool\n");
    assert!(!Path::new(&tools).join("bin/evil").exists());
    let home = world.root().join("home").display().to_string();
    let (ran, _) = guard(&world, &["--read", &home], "true");
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("contains a directory that is private"), "{ran}");
}

/// Waits until a file exists.
fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(40);
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The upper directory of the only copy.
fn upper(world: &World) -> std::path::PathBuf {
    let root = world.root().join("home/.local/state/moothall/guard");
    let workspace = fs_err::read_dir(root).unwrap().next().unwrap().unwrap().path();
    let run = fs_err::read_dir(workspace).unwrap().next().unwrap().unwrap().path();
    run.join("upper")
}

/// Starts an agent and waits until it has written the file `ready`.
#[expect(clippy::zombie_processes, reason = "callers wait for it")]
fn started(world: &World, args: &[&str]) -> Child {
    // Agents that wait for standard input end when the test closes it.
    let mut child = world.command(args).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let root = world.root().join("home/.local/state/moothall/guard");
    wait_for(&root);
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        let found = fs_err::read_dir(&root).unwrap().next().and_then(Result::ok);
        let run = found.and_then(|found| fs_err::read_dir(found.path()).unwrap().next());
        if run.is_some_and(|run| run.unwrap().path().join("upper/ready").exists()) {
            return child;
        }
        if Instant::now() >= until {
            let _ = child.kill();
            panic!("the agent does not start: {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process with this argument exists.
fn is_running(marker: &str) -> bool {
    let processes = fs_err::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|one| fs_err::read(one.path().join("cmdline")).ok()).any(|line| {
        let args: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        args.first().is_some_and(|program| program.ends_with(b"sleep"))
            && args.contains(&marker.as_bytes())
    })
}

/// A number of seconds that no other test sleeps.
fn marker(at: u32) -> String {
    format!("{}.{at}", 100_000 + std::process::id())
}

#[test]
fn no_process_of_an_agent_survives_its_end() {
    let world = world();
    let marker = marker(1);
    let script = format!(
        "setsid sleep {marker} & (sleep {marker} &) ; nohup sleep {marker} >/dev/null 2>&1 & echo two >> notes.txt"
    );
    let (ran, record) = guard(&world, &[], &script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert!(!is_running(&marker));
}

#[test]
fn an_agent_that_is_stopped_at_its_time_limit_is_judged() {
    let world = world();
    let marker = marker(2);
    let script = format!("echo two >> notes.txt; setsid sleep {marker} & sleep {marker}");
    let (ran, record) = guard(&world, &["--timeout", "2s"], &script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["end"], "deadline");
    assert!(!is_running(&marker));
}

#[test]
fn an_agent_cannot_start_more_processes_than_its_limit() {
    let world = world();
    let marker = marker(5);
    let script = format!("echo two >> notes.txt; for i in $(seq 60); do sleep {marker} & done");
    let (ran, record) = guard(&world, &["--processes", "400"], &script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["end"], serde_json::json!({ "exited": 0 }), "{ran}");
    // The shell gives up when it cannot start a process.
    let (ran, record) = guard(&world, &["--processes", "20"], &script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["end"], serde_json::json!({ "exited": 2 }), "{ran}");
    assert!(!is_running(&marker));
}

#[test]
fn an_agent_is_stopped_at_its_memory_limit_or_not_started() {
    let world = world();
    // `tail` keeps a line of 300 MB in memory.
    let script = "echo two >> notes.txt; head -c 300000000 /dev/zero | tail -n 1 | wc -c";
    let (ran, _) = guard(&world, &["--memory", "64"], script);
    match rustix::process::geteuid().is_root() {
        true => {
            assert_eq!(ran.code, Some(0), "{ran}");
            assert!(ran.stderr.contains("killed at the memory limit"), "{ran}");
            assert_eq!(world.read("ws/notes.txt"), "one\ntwo\n");
        }
        // Only root can create cgroups, and nothing starts without a limit that was requested.
        false => {
            assert_eq!(ran.code, Some(4), "{ran}");
            assert!(ran.stderr.contains("cannot be limited without cgroups"), "{ran}");
            assert_eq!(world.read("ws/notes.txt"), "one\n");
        }
    }
}

#[test]
fn an_agent_that_kills_itself_is_judged() {
    let world = world();
    let (ran, record) = guard(&world, &[], "echo two >> notes.txt; kill -9 $$");
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
    assert_eq!(record["end"]["signalled"], 9);
}

#[test]
fn an_interrupted_agent_is_not_judged_and_its_copy_can_be_resumed() {
    let world = world();
    let marker = marker(3);
    let script =
        format!("echo two >> notes.txt; echo x > ready; setsid sleep {marker} & sleep {marker}");
    let args = guard_args(&[], &script);
    let child = started(&world, &args);
    let busy = run(&world, &["guard", "diff"]);
    assert_eq!(busy.code, Some(2), "{busy}");
    assert!(busy.stderr.contains("an agent is running"), "{busy}");
    signal(&child, "INT");
    let ran = world.ran(&args, child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{ran}");
    assert!(ran.stderr.contains("nothing was judged"), "{ran}");
    assert!(!is_running(&marker));
    assert_eq!(world.read("ws/notes.txt"), "one\n");
    let status = run(&world, &["guard", "status", "--json"]).json();
    assert_eq!((&status["state"], &status["end"]), (&"stopped".into(), &"interrupted".into()));
    let diff = run(&world, &["guard", "diff"]);
    assert!(diff.stdout.contains("+two"), "{diff}");
    // Another command in the same copy.
    let resumed = resume(&world, "rm ready; cat notes.txt >&2");
    check_outcomes(&resumed, &resumed.json(), 0, &[("notes.txt", "applied")]);
    assert!(resumed.stderr.contains("one\ntwo\n"), "{resumed}");
    assert_eq!(world.read("ws/notes.txt"), "one\ntwo\n");
}

#[test]
fn a_killed_supervisor_takes_the_agent_with_it_and_the_copy_can_be_judged() {
    let world = world();
    let marker = marker(4);
    let script =
        format!("echo two >> notes.txt; echo x > ready; setsid sleep {marker} & sleep {marker}");
    let args = guard_args(&[], &script);
    let mut child = started(&world, &args);
    child.kill().unwrap();
    child.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(40);
    while is_running(&marker) {
        assert!(Instant::now() < until, "a process of the agent survives");
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = run(&world, &["guard", "status", "--json"]).json();
    assert_eq!(status["state"], "stopped");
    let submitted = run(&world, &["guard", "submit", "--json"]);
    let expected = [("notes.txt", "applied"), ("ready", "applied")];
    check_outcomes(&submitted, &submitted.json(), 0, &expected);
}

#[test]
fn a_discarded_copy_leaves_nothing_but_its_record() {
    let world = world();
    let script = "echo x > ready; mkdir -p locked/in; echo x > locked/in/file; chmod 000 locked; \
                  sleep 100";
    let args = guard_args(&[], script);
    let child = started(&world, &args);
    let copy = upper(&world);
    signal(&child, "TERM");
    assert_eq!(world.ran(&args, child.wait_with_output().unwrap()).code, Some(130));
    assert!(copy.exists());
    let discarded = run(&world, &["guard", "discard"]);
    assert_eq!(discarded.code, Some(0), "{discarded}");
    assert!(!copy.exists());
    let status = run(&world, &["guard", "status", "--json"]).json();
    assert_eq!(status["state"], "discarded");
    let resumed = run(&world, &["guard", "resume"]);
    assert_eq!(resumed.code, Some(2), "{resumed}");
    assert!(resumed.stderr.contains("already removed"), "{resumed}");
}

#[test]
fn a_file_that_a_person_saves_in_the_meantime_is_a_conflict_and_keeps_the_save() {
    let world = world();
    let script = "echo agent >> notes.txt; echo agent >> src/app.py; echo x > ready; \
                  read line";
    let args = guard_args(&[], script);
    let child = started(&world, &args);
    world.write("ws/notes.txt", "one\nfrom a person\n");
    let ran = world.ran(&args, child.wait_with_output().unwrap());
    let record = ran.json();
    let expected = [("notes.txt", "needs_review"), ("ready", "applied"), ("src/app.py", "applied")];
    check_outcomes(&ran, &record, 3, &expected);
    assert!(rules(&record).contains(&"copy.conflict".to_owned()), "{ran}");
    assert_eq!(world.read("ws/notes.txt"), "one\nfrom a person\n");
    assert!(world.read("ws/src/app.py").ends_with("agent\n"));
}

#[test]
fn another_branch_in_the_meantime_holds_everything() {
    let world = world();
    let script = "echo agent >> notes.txt; echo x > ready; read line";
    let args = guard_args(&[], script);
    let child = started(&world, &args);
    world.write("ws/.git/HEAD", "ref: refs/heads/other\n");
    let ran = world.ran(&args, child.wait_with_output().unwrap());
    let expected = [("notes.txt", "needs_review"), ("ready", "needs_review")];
    check_outcomes(&ran, &ran.json(), 3, &expected);
    assert_eq!(world.read("ws/notes.txt"), "one\n");
}

#[test]
fn a_link_in_place_of_a_directory_leads_nowhere() {
    let world = world();
    let script = "mv src elsewhere 2>/dev/null || cp -r src elsewhere; rm -rf src; ln -s ../.. src; \
                  echo x > src/outside.txt; ls src/ > /dev/null; true";
    let (ran, record) = guard(&world, &[], script);
    assert_eq!(ran.code, Some(1), "{ran}");
    let of_link = outcomes(&record).into_iter().find(|(path, _)| path == "src").unwrap();
    assert_eq!(of_link.1, "rejected");
    assert_eq!(world.read("outside.txt"), "outside\n");
    assert!(world.path("ws/src/app.py").exists());
}

#[test]
fn a_rejected_change_can_be_corrected_by_another_agent() {
    let world = world();
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let script = format!("echo 'KEY = \"{key}\"' > src/keys.py; echo two >> notes.txt");
    let (ran, record) = guard(&world, &[], &script);
    check_outcomes(&ran, &record, 1, &[("notes.txt", "applied"), ("src/keys.py", "rejected")]);
    assert_eq!(record["has_copy"], true);
    // Only the command of the user contains it.
    assert!(!record["result"].to_string().contains(&key), "{ran}");
    let resumed = resume(&world, "echo 'KEY = None' > src/keys.py");
    check_outcomes(&resumed, &resumed.json(), 0, &[("src/keys.py", "applied")]);
    assert_eq!(world.read("ws/src/keys.py"), "KEY = None\n");
}

#[test]
fn a_check_runs_on_the_resulting_files_and_holds_them_if_it_fails() {
    let world = world();
    let check = "grep -q two notes.txt && test ! -e Makefile && echo x > generated";
    let script = "echo two >> notes.txt; echo 'all:' > Makefile";
    let (ran, record) = guard(&world, &["--check", check], script);
    check_outcomes(&ran, &record, 3, &[("Makefile", "needs_review"), ("notes.txt", "applied")]);
    assert!(!world.path("ws/generated").exists());
    let (ran, record) =
        guard(&world, &["--check", "! grep -q three notes.txt"], "echo three >> notes.txt");
    check_outcomes(&ran, &record, 3, &[("notes.txt", "needs_review")]);
    assert!(rules(&record).contains(&"check.failed".to_owned()), "{ran}");
    assert_eq!(world.read("ws/notes.txt"), "one\ntwo\n");
}

#[test]
fn more_files_than_the_policy_allows_wait_for_review() {
    let world = world();
    let script = "for at in $(seq 1 30); do echo $at > src/file$at.txt; done";
    let (ran, record) = guard(&world, &[], script);
    assert_eq!(ran.code, Some(3), "{ran}");
    assert_eq!(outcomes(&record).len(), 30);
    assert!(outcomes(&record).iter().all(|(_, outcome)| outcome == "needs_review"));
    assert!(rules(&record).contains(&"diff.max_files".to_owned()), "{ran}");
    let waiting = run(&world, &["review", "--json"]).json();
    assert_eq!(waiting["waiting"].as_array().unwrap().len(), 30);
    assert!(!world.path("ws/src/file1.txt").exists());
}

#[test]
fn a_full_copy_gives_the_same_results() {
    let world = world();
    let script = "echo two >> notes.txt; rm src/app.py; echo evil > .git/hooks/x; echo x > a.log";
    let (ran, record) = guard(&world, &["--full-copy"], script);
    check_outcomes(
        &ran,
        &record,
        3,
        &[("notes.txt", "needs_review"), ("src/app.py", "needs_review")],
    );
    assert_eq!(record["result"]["git"]["settings"]["first"][0], ".git/hooks/x");
    assert_eq!(world.read("ws/notes.txt"), "one\n");
    let (ran, record) = guard(&world, &["--full-copy"], "echo two >> notes.txt");
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
}

#[test]
fn an_agent_connects_only_to_allowed_hosts_and_ports() {
    let world = world();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let mut request = [0; 512];
            let _ = std::io::Read::read(&mut stream, &mut request);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            std::io::Write::write_all(&mut stream, answer.as_bytes()).unwrap();
        }
    });
    let blocked = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let blocked_port = blocked.local_addr().unwrap().port();
    // `bash` opens sockets without another program.
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3 > direct.txt
         exec 4<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n' >&4
         head -n 2 <&4 > connect.txt; printf 'GET / HTTP/1.1\\r\\n\\r\\n' >&4; cat <&4 > tunnel.txt
         exec 5<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT evil.example.com:443 HTTP/1.1\\r\\n\\r\\n' >&5; cat <&5 > refused.txt
         (exec 6<>/dev/tcp/127.0.0.1/{blocked_port}) 2>/dev/null && echo reached > blocked.txt
         (exec 7<>/dev/udp/127.0.0.53/53) 2>/dev/null; echo \"$HTTPS_PROXY\" > proxy.txt; true"
    );
    let (port, allowed) = (port.to_string(), format!("localhost:{port}"));
    let mut args = vec!["guard", "--workspace", "ws", "--json", "--keep"];
    args.extend(["--allow-loopback", &port, "--allow-host", &allowed, "--", "bash", "-c", &script]);
    let ran = world.run(&args);
    let record = ran.json();
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(world.read("ws/direct.txt").ends_with("hello"), "{ran}");
    assert!(world.read("ws/tunnel.txt").ends_with("hello"), "{ran}");
    assert!(world.read("ws/refused.txt").starts_with("HTTP/1.1 403"), "{ran}");
    assert!(!world.path("ws/blocked.txt").exists());
    assert_eq!(world.read("ws/proxy.txt"), "http://127.0.0.1:3128\n");
    let hosts: Vec<(String, bool)> = record["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["host"].as_str().unwrap().to_owned(), one["allowed"].as_bool().unwrap()))
        .collect();
    let expected = [("127.0.0.1", true), ("evil.example.com", false), ("localhost", true)];
    assert_eq!(hosts, expected.map(|(host, allowed)| (host.to_owned(), allowed)));
    server.join().unwrap();
}

#[test]
fn a_resumed_agent_reads_the_review_of_its_drafts() {
    let world = world();
    world.write("ws/Makefile", "all:\n");
    // The agent plants a link where the review is written later.
    let script = "echo 'all: build' > Makefile; ln -s \"$HOME/../outside.txt\" /tmp/moothall-review.txt; \
                  test -z \"$MOOTHALL_REVIEW\"";
    let (ran, record) = guard(&world, &["--keep"], script);
    check_outcomes(&ran, &record, 3, &[("Makefile", "needs_review")]);
    assert_eq!(record["end"], serde_json::json!({ "exited": 0 }), "{ran}");
    let draft = record["result"]["files"][0]["draft"].as_str().unwrap().to_owned();
    let shown = run(&world, &["review", "show", &draft, "--json"]).json();
    let seal = shown["seal"].as_str().unwrap();
    let comment = ["review", "comment", &draft, "--if-match", seal, "--line", "1", "--text", "no"];
    assert_eq!(run(&world, &comment).code, Some(0));
    let back = ["review", "send-back", &draft, "--if-match", seal, "--reason", "use make"];
    assert_eq!(run(&world, &back).code, Some(0));
    let resumed = resume(&world, "cat \"$MOOTHALL_REVIEW\" >&2; echo 'all:' > Makefile");
    let review = "Makefile: sent back by ada\n  use make\nMakefile, line 1 of the change:\n  no\n";
    assert!(resumed.stderr.contains(review), "{resumed}");
    assert_eq!(world.read("outside.txt"), "outside\n");
}

#[test]
fn an_offline_agent_has_no_proxy() {
    let world = world();
    let script = "test -z \"$HTTPS_PROXY\" && echo two >> notes.txt";
    let (ran, record) = guard(&world, &["--offline"], script);
    check_outcomes(&ran, &record, 0, &[("notes.txt", "applied")]);
}

#[test]
fn mistakes_have_a_hint() {
    let world = world();
    let check = |args: &[&str], expected: &str, hint: &str| {
        let ran = run(&world, args);
        assert_eq!(ran.code, Some(2), "{ran}");
        assert!(ran.stderr.contains(expected) && ran.stderr.contains(hint), "{ran}");
    };
    check(&["guard"], "missing agent command", "moothall guard -- claude");
    check(&["guard", "status"], "no guarded runs in this workspace", "moothall guard -- AGENT");
    check(&["guard", "resume", "abc"], "no guarded run `abc`", "moothall guard status --all");
    let missing = world.run(&["guard", "--workspace", "ws", "--", "no-such-agent"]);
    assert_eq!(missing.code, Some(2), "{missing}");
    assert!(missing.stderr.contains("cannot find the agent `no-such-agent`"), "{missing}");
    let unset = world.run(&["guard", "--workspace", "ws", "--env", "NOT_SET", "--", "true"]);
    assert!(unset.stderr.contains("`NOT_SET` is not set"), "{unset}");
    let host =
        world.run(&["guard", "--workspace", "ws", "--allow-host", "https://x", "--", "true"]);
    assert!(host.stderr.contains("invalid host"), "{host}");
    // None of them leaves a copy behind.
    let status = run(&world, &["guard", "status"]);
    assert!(status.stderr.contains("no guarded runs"), "{status}");
}

#[test]
fn the_result_names_every_file_and_the_next_command() {
    let world = world();
    let script = "echo two >> notes.txt; echo 'all:' > Makefile";
    let ran = world.run(&["guard", "--workspace", "ws", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(3), "{ran}");
    for line in ["needs review  Makefile", "applied       notes.txt", "hint: `moothall review`"] {
        assert!(ran.stdout.contains(line), "{line}: {ran}");
    }
    let status = run(&world, &["guard", "status"]);
    assert!(status.stdout.contains("judged: the agent ended with exit code 0"), "{status}");
    let all = run(&world, &["guard", "status", "--all"]);
    assert!(all.stdout.contains("judged     sh -c"), "{all}");
}
