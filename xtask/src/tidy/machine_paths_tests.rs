use super::*;
use crate::tidy::headlines;

#[track_caller]
fn check_line(path: &str, line: &str, expected: &[String]) {
    let tree = SourceTree::of(&[(path, &format!("first\n{line}\n"))]);
    assert_eq!(headlines(&check(&tree)), expected);
}

#[test]
fn neutral_paths_and_hosts_pass() {
    for line in [
        "cd $HOME/.cache/moothall",
        "/workspace/logs/i1.json is written in the guest",
        "see docs/work/plan.md and https://example.com/work/x",
        "/home/<you>/moothall.toml and /home/ada/moothall.toml",
        "registry+https://github.com/rust-lang/crates.io-index",
    ] {
        check_line("README.md", line, &[]);
    }
}

#[test]
fn path_of_one_machine_fails() {
    for folder in FOLDERS {
        check_line(
            "run.sh",
            &format!("cat \"{folder}main/x\""),
            &[format!("run.sh:2: [machine-paths] names `{folder}…`, a machine-specific path")],
        );
    }
}

#[test]
fn a_home_directory_path_in_the_tree_fails() {
    for home in HOMES {
        check_line(
            "run.sh",
            &format!("{home}bob/moothall"),
            &[format!("run.sh:2: [machine-paths] names `{home}…`, a machine-specific path")],
        );
    }
}

#[test]
fn registry_by_host_name_fails() {
    for host in HOSTS {
        check_line(
            "setup.sh",
            &format!("curl https://{host}/simple"),
            &[format!("setup.sh:2: [machine-paths] names the package registry `{host}`")],
        );
    }
}

#[test]
fn lock_files_may_name_registries_but_no_paths() {
    let host = HOSTS[5];
    check_line("web/package-lock.json", &format!("\"resolved\": \"https://{host}/vite\""), &[]);
    let folder = FOLDERS[0];
    check_line(
        "Cargo.lock",
        &format!("source = \"{folder}x\""),
        &[format!("Cargo.lock:2: [machine-paths] names `{folder}…`, a machine-specific path")],
    );
}
