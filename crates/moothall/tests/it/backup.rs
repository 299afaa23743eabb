//! `moothall backup` and `moothall restore`, with active runs and damaged files.

use std::path::Path;

use insta::assert_snapshot;

use crate::scene::{Scene, no_answer, second_try};
use crate::world::{Ran, SMALL, World};

/// A world with a run that passed and one whose process was killed. The scene is dropped, because
/// it would keep the store open.
fn world() -> World {
    let world = World::new();
    let scene = Scene::new(&world);
    scene.run(0, "print the first 3 primes", second_try());
    scene.run(1, "sort the names", no_answer());
    drop(scene);
    world
}

fn data(world: &World) -> std::path::PathBuf {
    world.root().join("home/.local/share/moothall")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_restore_brings_back_runs_and_keeps_existing_data() {
    let world = world();
    world.write_config("keys.toml", "openai = \"sk-very-secret-indeed\"\n");
    let before = world.run(&["runs", "--json"]).stdout;
    let shown = world.run(&["show", "019a85c0", "--json"]).stdout;
    let made = world.run(&["backup", "runs.tar"]);
    assert!(made.stdout.starts_with("saved 2 runs to runs.tar, "), "{made}");
    assert_eq!(names(&world.path("")), ["runs.tar"]);
    let packed = fs_err::read(world.path("runs.tar")).unwrap();
    assert!(!packed.windows(14).any(|part| part == b"sk-very-secret"));
    assert_snapshot!(world.run(&["backup", "runs.tar"]));
    assert_snapshot!(world.run(&["restore", "runs.tar"]));

    let gone = world.run(&["runs", "rm", "019a85c0", "--yes", "--json"]);
    assert_eq!(gone.code, Some(0), "{gone}");
    let restored = world.run(&["restore", "runs.tar", "--force", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(restored.json()["runs"], 2);
    assert_eq!(world.run(&["runs", "--json"]).stdout, before);
    assert_eq!(world.run(&["show", "019a85c0", "--json"]).stdout, shown);
    // The previous data is complete as well.
    let aside = restored.json()["moved_aside"].as_str().unwrap().to_owned();
    assert!(names(&data(&world)).iter().all(|name| !name.starts_with('.')));
    let other = World::new();
    fs_err::create_dir_all(data(&other)).unwrap();
    fs_err::copy(aside, data(&other).join("moothall.db")).unwrap();
    assert_eq!(other.run(&["runs", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_can_be_resumed_after_a_restore_into_another_directory() {
    let world = World::new();
    let paused = world.run(&[&SMALL[..], &["--budget-tokens", "60000"]].concat());
    assert_eq!(paused.code, Some(5), "{paused}");
    let run = world.only_run();
    assert_eq!(world.run(&["backup", "runs.tar"]).code, Some(0));
    let restored = world.run(&["restore", "runs.tar", "--into", "elsewhere"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert!(restored.stderr.contains("MOOTHALL_DATA_DIR=elsewhere moothall runs"), "{restored}");
    // The run is deleted here and resumed in the restored copy.
    assert_eq!(world.run(&["runs", "rm", &run, "--yes", "--force"]).code, Some(0));
    let elsewhere = world.path("elsewhere").to_str().unwrap().to_owned();
    let world = world.with("MOOTHALL_DATA_DIR", &elsewhere);
    let resumed =
        world.run(&["resume", &run, "--budget-tokens", "10000000", "--receipt", "receipt"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(world.run(&["verify", "receipt"]).code, Some(0));
    assert_eq!(world.run(&["replay", &run]).code, Some(0));
}

#[test]
fn a_backup_of_a_running_run_can_be_resumed() {
    let world = World::new();
    let mut driver = world
        .command(&[
            "consult",
            "HLXI",
            "--verdict",
            "off",
            "--model",
            "demo",
            "--yes",
            "--moves",
            "5",
        ])
        .spawn()
        .unwrap();
    while !data(&world).join("moothall.db").exists()
        || world.run(&["runs", "--json"]).json()["runs"][0]["events"].as_u64() < Some(30)
    {
        assert!(driver.try_wait().unwrap().is_none(), "the run ended before the backup");
    }
    let made = world.run(&["backup", "runs.tar"]);
    assert_eq!(made.code, Some(0), "{made}");
    let run = world.only_run();
    // Data in use is not moved away.
    let refused = world.run(&["restore", "runs.tar", "--force"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    assert!(refused.stderr.contains("another process is executing run"), "{refused}");
    assert_eq!(world.run(&["restore", "runs.tar", "--into", "elsewhere"]).code, Some(0));
    assert!(driver.wait().unwrap().success());
    let told = |world: &World| {
        let memo = world.run(&["show", &run, "--memo"]);
        assert_eq!(memo.code, Some(0), "{memo}");
        memo.stdout
    };
    let here = told(&world);
    let elsewhere = world.path("elsewhere").to_str().unwrap().to_owned();
    let world = world.with("MOOTHALL_DATA_DIR", &elsewhere);
    let resumed = world.run(&["resume", &run]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert_eq!(told(&world), here);
}

#[test]
fn a_changed_backup_is_refused_and_leaves_nothing_behind() {
    let world = world();
    assert_eq!(world.run(&["backup", "runs.tar"]).code, Some(0));
    let good = fs_err::read(world.path("runs.tar")).unwrap();
    let before = world.run(&["runs", "--json"]).stdout;
    let mut changed = good.clone();
    let word = changed.windows(6).position(|part| part == b"primes").unwrap();
    changed[word] = b'P';
    fs_err::write(world.path("changed.tar"), changed).unwrap();
    fs_err::write(world.path("cut.tar"), &good[..good.len() / 2]).unwrap();
    world.write("diary.tar", "Dear diary");
    for (file, force) in
        [("changed.tar", true), ("cut.tar", true), ("diary.tar", true), ("changed.tar", false)]
    {
        let place = if force { "--force" } else { "--into=elsewhere" };
        let refused = world.run(&["restore", file, place]);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(&format!("cannot restore {file}: ")), "{refused}");
    }
    assert_snapshot!(world.run(&["restore", "changed.tar", "--force"]));
    assert_eq!(world.run(&["runs", "--json"]).stdout, before);
    let left = names(&data(&world));
    assert!(
        left.iter().all(|name| !name.starts_with(['.']) && !name.contains("before")),
        "{left:?}"
    );
    assert_eq!(names(&world.path("elsewhere")), [""; 0]);
}

/// A workspace with a draft that needs review; returns the draft.
pub(crate) fn draft_that_waits(world: &World) -> String {
    fs_err::create_dir_all(world.path("ws")).unwrap();
    world.write("ws/Makefile", "all:\n");
    let workspace = ["--workspace", "ws", "--json"];
    let request = ["draft", "request", "Makefile", "--task", "t1"];
    let asked = world.run(&[&request[..], &workspace].concat()).json();
    let draft = asked["draft_id"].as_str().unwrap().to_owned();
    let write = ["draft", "write", &draft, "--file", "-", "--workspace", "ws"];
    assert_eq!(world.run_with_input(&write, b"all: build\n").code, Some(0));
    let submitted = world.run(&["draft", "submit", &draft, "--workspace", "ws"]);
    assert_eq!(submitted.code, Some(3), "{submitted}");
    draft
}

/// The output of `moothall` about the drafts of the workspace and their audit log.
pub(crate) fn drafts_and_journal(world: &World) -> [String; 4] {
    let told = |arguments: &[&str]| -> Ran {
        world.run(&[arguments, &["--workspace", "ws", "--json"]].concat())
    };
    let verified = told(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified}");
    assert_eq!(verified.json()["holds"], true, "{verified}");
    let mut verified = verified.json();
    // Where the anchor is kept depends on the data directory.
    verified["anchor"]["file"].take();
    let [drafts, review, records] =
        [&["draft", "list", "--all"][..], &["review"], &["audit", "show"]]
            .map(|arguments| told(arguments).stdout);
    [drafts, review, records, verified.to_string()]
}

/// Deletes everything of this user except the workspace.
pub(crate) fn lose_home(world: &World) {
    let home = world.root().join("home");
    fs_err::rename(&home, world.root().join("lost")).unwrap();
    fs_err::create_dir(home).unwrap();
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found
}

/// Regression: backups contained only runs, so drafts, audit logs and keys were lost with the disk.
#[test]
fn a_restore_brings_back_runs_drafts_and_a_valid_audit_log() {
    let world = world().with("USER", "ada");
    let draft = draft_that_waits(&world);
    let runs = world.run(&["runs", "--json"]).stdout;
    let shown = world.run(&["show", "019a85c0", "--json"]).stdout;
    let drafts = drafts_and_journal(&world);
    let made = world.run(&["backup", "all.tar"]);
    let words = "saved 2 runs and the drafts of 1 workspace to all.tar, ";
    assert!(made.stdout.starts_with(words), "{made}");
    assert_eq!(mode(&world.path("all.tar")), 0o600);

    lose_home(&world);
    let restored = world.run(&["restore", "all.tar"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(world.run(&["runs", "--json"]).stdout, runs);
    assert_eq!(world.run(&["show", "019a85c0", "--json"]).stdout, shown);
    assert_eq!(drafts_and_journal(&world), drafts);
    // The keys are the same, and inaccessible to other users.
    let stores = |home: &str| world.root().join(home).join(".local/state/moothall/drafts");
    let store = names(&stores("home")).pop().unwrap();
    assert_eq!(names(&stores("home")), names(&stores("lost")));
    for key in ["keys/checkpoint.pk8", "keys/fingerprint"] {
        let key = |home: &str| fs_err::read(stores(home).join(&store).join(key)).unwrap();
        assert_eq!(key("home"), key("lost"));
    }
    for file in files_below(&stores("home")) {
        assert!([0o600, 0o400].contains(&mode(&file)), "{} {:o}", file.display(), mode(&file));
    }
    // Work continues: the contents are present, and the hash chain continues from the last record.
    let show = ["review", "show", &draft, "--workspace", "ws", "--json"];
    let seal = world.run(&show).json()["seal"].as_str().unwrap().to_owned();
    let approve = ["review", "approve", &draft, "--if-match", &seal, "--workspace", "ws"];
    let approved = world.run(&approve);
    assert_eq!(approved.code, Some(0), "{approved}");
    assert_eq!(world.read("ws/Makefile"), "all: build\n");
    drafts_and_journal(&world);
}

#[test]
fn drafts_are_backed_up_without_runs_and_restored_elsewhere() {
    let world = World::new().with("USER", "ada");
    draft_that_waits(&world);
    let drafts = drafts_and_journal(&world);
    let made = world.run(&["backup", "drafts.tar", "--json"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_eq!(made.json()["draft_stores"], 1);
    let restored = world.run(&["restore", "drafts.tar", "--into", "elsewhere", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(restored.json()["draft_stores"], 1);
    lose_home(&world);
    let elsewhere = world.path("elsewhere").to_str().unwrap().to_owned();
    let world = world.with("MOOTHALL_DATA_DIR", &elsewhere);
    assert_eq!(drafts_and_journal(&world), drafts);
}

#[test]
fn a_restore_replaces_drafts_only_on_request_and_keeps_the_old_ones() {
    let world = World::new().with("USER", "ada");
    let draft = draft_that_waits(&world);
    let drafts = drafts_and_journal(&world);
    assert_eq!(world.run(&["backup", "drafts.tar"]).code, Some(0));
    let discarded = world.run(&["draft", "discard", &draft, "--workspace", "ws"]);
    assert_eq!(discarded.code, Some(0), "{discarded}");
    let later = drafts_and_journal(&world);
    let refused = world.run(&["restore", "drafts.tar"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("drafts already exist"), "{refused}");
    assert_eq!(drafts_and_journal(&world), later);

    let restored = world.run(&["restore", "drafts.tar", "--force", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(drafts_and_journal(&world), drafts);
    let aside = restored.json()["drafts_moved_aside"][0].as_str().unwrap().to_owned();
    assert!(Path::new(&aside).join("audit/000001.ndjson").exists(), "{aside}");
    // Data that was moved aside is not backed up again.
    let made = world.run(&["backup", "again.tar", "--json"]).json();
    assert_eq!(made["draft_stores"], 1);
}

/// A stale anchor would report the restored audit log as truncated.
#[test]
fn anchor_of_an_audit_journal_is_backed_up_and_replaced_with_it() {
    let world = World::new().with("USER", "ada");
    let draft = draft_that_waits(&world);
    let stores = world.root().join("home/.local/state/moothall/drafts");
    let store = names(&stores).pop().unwrap();
    let anchor = data(&world).join("anchors").join(&store);
    let head = world.run(&["audit", "verify", "--workspace", "ws", "--json"]).json();
    let kept = format!("{}:{}\ncheckpoint 0\n", head["records"], head["head"].as_str().unwrap());
    fs_err::create_dir_all(anchor.parent().unwrap()).unwrap();
    fs_err::write(&anchor, &kept).unwrap();
    assert_eq!(world.run(&["backup", "drafts.tar"]).code, Some(0));
    // The audit log and its anchor continue.
    let discarded = world.run(&["draft", "discard", &draft, "--workspace", "ws"]);
    assert_eq!(discarded.code, Some(0), "{discarded}");
    let newer = fs_err::read_to_string(&anchor).unwrap();
    let restored = world.run(&["restore", "drafts.tar", "--force", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(fs_err::read_to_string(&anchor).unwrap(), kept);
    assert_eq!(mode(&anchor), 0o600);
    let aside = restored.json()["drafts_moved_aside"][1].as_str().unwrap().to_owned();
    assert_eq!(fs_err::read_to_string(aside).unwrap(), newer);
    drafts_and_journal(&world);

    lose_home(&world);
    assert_eq!(world.run(&["restore", "drafts.tar"]).code, Some(0));
    assert_eq!(fs_err::read_to_string(&anchor).unwrap(), kept);
    drafts_and_journal(&world);
    // The anchor is not left in the store.
    assert!(!stores.join(&store).join("outside").exists());
}

/// A process that has read the old audit log would report the restored one as damaged.
#[test]
fn restore_does_not_replace_drafts_that_a_process_has_open() {
    let world = World::new().with("USER", "ada");
    draft_that_waits(&world);
    assert_eq!(world.run(&["backup", "drafts.tar"]).code, Some(0));
    let stores = world.root().join("home/.local/state/moothall/drafts");
    let store = stores.join(names(&stores).pop().unwrap());
    let open = fs_err::File::open(store.join("store.lock")).unwrap();
    let refused = world.run(&["restore", "drafts.tar", "--force"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    assert!(refused.stderr.contains("another process is using the drafts in "), "{refused}");
    drop(open);
    assert_eq!(world.run(&["restore", "drafts.tar", "--force"]).code, Some(0));
}

/// The format of backups without drafts.
#[test]
fn backup_of_an_older_version_without_drafts_still_restores() {
    let world = world();
    let before = world.run(&["runs", "--json"]).stdout;
    assert_eq!(world.run(&["backup", "new.tar"]).code, Some(0));
    let mut database = Vec::new();
    let mut archive = tar::Archive::new(fs_err::File::open(world.path("new.tar")).unwrap());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().as_ref() == Path::new("moothall.db") {
            std::io::Read::read_to_end(&mut entry, &mut database).unwrap();
        }
    }
    let manifest = serde_json::json!({
        "format": 1, "made_by": "moothall 0.1.0", "created_at_ms": 1_763_000_000_000_u64, "runs": 2,
        "files": [{
            "name": "moothall.db",
            "bytes": database.len(),
            "sha256": moothall_core::Sha256Hex::of(&database),
        }],
    })
    .to_string();
    let mut old = tar::Builder::new(fs_err::File::create(world.path("old.tar")).unwrap());
    for (name, bytes) in [("manifest.json", manifest.as_bytes()), ("moothall.db", &database[..])] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        old.append_data(&mut header, name, bytes).unwrap();
    }
    old.into_inner().unwrap();
    lose_home(&world);
    let restored = world.run(&["restore", "old.tar", "--json"]);
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(restored.json()["draft_stores"], 0);
    assert_eq!(world.run(&["runs", "--json"]).stdout, before);
}

#[test]
fn nothing_to_back_up_and_no_backup_are_usage_errors() {
    let world = World::new();
    assert_snapshot!(world.run(&["backup", "runs.tar"]));
    assert_snapshot!(world.run(&["restore", "runs.tar"]));
    assert_eq!(names(&world.path("")), [""; 0]);
}

#[test]
fn help_of_backup_and_restore_shows_every_flag() {
    let world = World::new();
    let pages = ["backup", "restore"].map(|command| world.run(&[command, "--help"]).to_string());
    assert_snapshot!(pages.join("\n\n"));
}
