//! `moothall gate install`, and git running the hook.

use std::collections::BTreeMap;
use std::path::Path;

use super::repo::{Repo, SOURCE, token};
use crate::world::set_mode;

/// The environment of a commit: this build of Moothall is in `PATH`.
fn commit(repo: &Repo, arguments: &[&str]) -> (bool, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_moothall")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    repo.try_git(&[&["commit", "-m", "x"], arguments].concat(), &[("PATH", &path)])
}

/// The names, modes and contents of all hooks.
fn hooks(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = BTreeMap::new();
    for entry in fs_err::read_dir(folder).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode();
        let name = entry.file_name().to_string_lossy().into_owned();
        found.insert(name, (mode, fs_err::read(entry.path()).unwrap()));
    }
    found
}

#[test]
fn the_hook_blocks_a_bad_commit_and_passes_a_good_one() {
    let repo = Repo::new();
    let before = hooks(&repo.path(".git/hooks"));
    assert_eq!(repo.gate(&["install"]).code, Some(0));
    repo.write("z/a.py", format!("{SOURCE}k = '{}'\n", token()));
    // `--all` commits another index than `.git/index`.
    let (passed, text) = commit(&repo, &["--all"]);
    assert!(!passed && text.contains("secret.specific"), "{text}");
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    let (passed, text) = commit(&repo, &["--all"]);
    assert!(passed, "{text}");
    // Without Moothall nothing is committed.
    repo.write("z/a.py", SOURCE);
    let (passed, text) =
        repo.try_git(&["commit", "--all", "-m", "x"], &[("PATH", "/usr/bin:/bin")]);
    assert!(!passed && text.contains("moothall is not in PATH"), "{text}");
    assert_eq!(repo.gate(&["install"]).stdout.split(':').next(), Some("already installed"));
    assert_eq!(repo.gate(&["install", "--remove"]).code, Some(0));
    assert_eq!(hooks(&repo.path(".git/hooks")), before);
    assert_eq!(repo.gate(&["install", "--remove"]).code, Some(0));
}

#[test]
fn an_existing_hook_runs_first_and_is_back_after_removal() {
    let repo = Repo::new();
    let hook = repo.path(".git/hooks/pre-commit");
    fs_err::write(&hook, "#!/bin/sh\necho existing hook\n[ ! -e stop ]\n").unwrap();
    set_mode(&hook, 0o750);
    let before = hooks(&repo.path(".git/hooks"));
    let ran = repo.gate(&["install"]);
    assert!(ran.stdout.contains("the existing hook runs first"), "{ran}");
    repo.write("z/a.py", SOURCE.replace("argv", "argv[1:]"));
    let (passed, text) = commit(&repo, &["--all"]);
    assert!(passed && text.contains("existing hook"), "{text}");
    repo.write("stop", "");
    repo.write("z/a.py", SOURCE);
    assert!(!commit(&repo, &["--all"]).0);
    assert_eq!(repo.gate(&["install", "--remove"]).code, Some(0));
    assert_eq!(hooks(&repo.path(".git/hooks")), before);
}

#[test]
fn the_directory_of_hooks_is_that_of_git_and_edited_hooks_are_kept() {
    let repo = Repo::new();
    repo.git(&["config", "core.hooksPath", "tools/hooks"]);
    assert_eq!(repo.gate(&["install"]).code, Some(0));
    let hook = repo.path("tools/hooks/pre-commit");
    assert!(hook.is_file());
    let edited = fs_err::read_to_string(&hook).unwrap() + "# more\n";
    fs_err::write(&hook, &edited).unwrap();
    let ran = repo.gate(&["install", "--remove"]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("edited"), "{ran}");
    assert_eq!(fs_err::read_to_string(&hook).unwrap(), edited);
}
