//! Agents that try to write outside of their copy for as long as they can: a short version of
//! `.ci/long guard` (`MOOTHALL_TEST_RACE_SECONDS`).

use crate::guard::{guard_args, outcomes, world};

/// Swaps directories with links and writes through them, while it also writes to everything it can
/// name. Runs in four processes.
const RACE: &str = r#"
mkdir -p in; : > in/file
end=$(( $(date +%s) + SECONDS_TO_RUN ))
swap() { while [ "$(date +%s)" -lt "$end" ]; do
    mv in aside 2>/dev/null; ln -s "$OUTSIDE" in 2>/dev/null; rm -f in 2>/dev/null; mv aside in 2>/dev/null
done; }
write() { while [ "$(date +%s)" -lt "$end" ]; do
    echo evil > in/victim.txt; echo evil > in/new.txt; ln -f notes.txt in/hard 2>/dev/null
    echo evil > "$OUTSIDE/victim.txt"; echo evil > "$OUTSIDE/new.txt"
    echo evil > /proc/1/cwd/victim.txt; echo evil > /proc/1/root/victim.txt
    echo evil > ../victim.txt; echo evil > ../../victim.txt
done 2>/dev/null; }
swap & write & write & write & wait
[ -f in/victim.txt ] && echo inside > ran.txt
"#;

#[test]
fn an_agent_never_writes_outside_of_its_copy() {
    let seconds = std::env::var("MOOTHALL_TEST_RACE_SECONDS").unwrap_or_else(|_| "2".to_owned());
    let world = world();
    fs_err::create_dir(world.path("outside")).unwrap();
    world.write("outside/victim.txt", "victim\n");
    world.write("victim.txt", "victim\n");
    let outside = world.path("outside").display().to_string();
    let script = RACE.replace("SECONDS_TO_RUN", &seconds);
    let variable = format!("OUTSIDE={outside}");
    let ran = world.run(&guard_args(&["--env", &variable, "--timeout", "10m"], &script));
    assert!(ran.code.is_some_and(|code| code != 4), "{ran}");
    // The agent ran to its end, and its writes reached the copy.
    assert!(outcomes(&ran.json()).iter().any(|(path, _)| path == "ran.txt"), "{ran}");
    let names = |folder: &str| {
        let found = fs_err::read_dir(world.path(folder)).unwrap().flatten();
        let mut names: Vec<_> = found.map(|one| one.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("outside"), ["victim.txt"]);
    assert_eq!(names(""), ["outside", "outside.txt", "victim.txt", "ws"]);
    for file in ["outside/victim.txt", "victim.txt"] {
        assert_eq!(world.read(file), "victim\n");
    }
    assert_eq!(world.read("ws/notes.txt"), "one\n");
    println!("writes outside of the copy in {seconds} s: 0");
}

/// A git repository with this many files.
fn repository(files: usize) -> crate::world::World {
    let world = crate::world::World::new().with("USER", "ada");
    for folder in 0..files.div_ceil(100) {
        let folder = format!("ws/f{folder}");
        fs_err::create_dir_all(world.path(&folder)).unwrap();
        for file in 0..100 {
            world.write(&format!("{folder}/{file}.txt"), &format!("{folder} {file}\n"));
        }
    }
    let git = "git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit -qm x";
    let made = std::process::Command::new("sh")
        .args(["-c", git])
        .current_dir(world.path("ws"))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status();
    assert!(made.unwrap().success());
    world
}

/// `.ci/long guard` sets `MOOTHALL_TEST_GUARD_FILES` to 50000 and runs an optimized build; other
/// machines may be busy, so the limits are ten times as long there.
#[test]
fn a_large_repository_starts_at_once() {
    let files = std::env::var("MOOTHALL_TEST_GUARD_FILES").ok();
    let factor = if files.is_some() { 1.0 } else { 10.0 };
    let files: usize = files.map_or(2_000, |files| files.parse().unwrap());
    let world = repository(files);
    let script = "begin=$(date +%s%N); git status --porcelain; end=$(date +%s%N)
                  echo \"status $(( (end - begin) / 1000000 )) ms\"; echo x >> f0/0.txt";
    let args = ["guard", "--workspace", "ws", "--keep", "--", "sh", "-c", script];
    let ran = world.run(&args);
    assert_eq!(ran.code, Some(0), "{ran}");
    let number = |text: &str, before: &str| -> f64 {
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{before} in {ran}"));
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let start = number(&ran.stderr, "private copy ready after ");
    let status = number(&ran.stdout, "status ") / 1000.0;
    println!("{files} files: start {start:.2} s, first git status {status:.2} s");
    assert!(start <= 0.2 * factor, "{ran}");
    assert!(status <= 0.5 * factor, "{ran}");
}
