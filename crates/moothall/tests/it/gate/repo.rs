//! A git repository for tests of `moothall gate`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::{Ran, World};

/// The decision, by exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    NeedsPerson,
    Rejected,
    /// The change cannot be judged: the command fails.
    Refused,
}

impl Outcome {
    pub(crate) fn of(ran: &Ran) -> Self {
        match ran.code {
            Some(0) => Self::Accepted,
            Some(3) => Self::NeedsPerson,
            Some(1) => Self::Rejected,
            Some(2 | 4) => Self::Refused,
            other => panic!("exit code {other:?}\n{}{}", ran.stdout, ran.stderr),
        }
    }
}

/// A repository in `ws` with one commit: `z/a.py` and `z/Makefile`.
pub(crate) struct Repo {
    pub(crate) world: World,
}

pub(crate) const SOURCE: &str = "import sys\n\n\ndef main():\n    print(sys.argv)\n";

impl Repo {
    pub(crate) fn new() -> Self {
        let repo = Self { world: World::new().with("USER", "ada") };
        fs_err::create_dir_all(repo.path("")).unwrap();
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo.write("z/a.py", SOURCE);
        repo.write("z/Makefile", "all:\n");
        repo.commit("base");
        repo
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.world.path("ws").join(name)
    }

    /// A file that programs of the repository would create.
    pub(crate) fn marker(&self) -> PathBuf {
        self.world.root().join("marker")
    }

    /// A program that creates the marker.
    pub(crate) fn evil(&self) -> String {
        let path = self.world.root().join("evil.sh");
        let text = format!("#!/bin/sh\ntouch '{}'\ncat\n", self.marker().display());
        fs_err::write(&path, text).unwrap();
        crate::world::set_mode(&path, 0o755);
        path.display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs_err::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn link(&self, name: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.path(name)).unwrap();
    }

    fn git_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=ada", "-c", "user.email=ada@example.com"])
            .args(["-c", "commit.gpgsign=false", "-c", "core.autocrlf=false"])
            .args(["-c", "protocol.file.allow=always", "-c", "advice.graftFileDeprecated=false"])
            .args(arguments)
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.world.root().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = self.git_command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs git and returns whether it succeeded, with its output.
    pub(crate) fn try_git(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
        let output = self.git_command(arguments).envs(variables.iter().copied()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    pub(crate) fn stage(&self) {
        self.git(&["add", "--all", "--force"]);
    }

    pub(crate) fn commit(&self, message: &str) {
        self.stage();
        self.git(&["commit", "--quiet", "--allow-empty", "--no-verify", "-m", message]);
    }

    pub(crate) fn gate(&self, arguments: &[&str]) -> Ran {
        let all = [&["gate", "--workspace", "ws"], arguments].concat();
        self.world.run(&all)
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        self.gate(&[arguments, &["--json"]].concat()).json()
    }

    /// Writes a blob.
    pub(crate) fn blob(&self, bytes: &[u8]) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], bytes)
    }

    /// Writes a tree with one more path than the base, whatever its names are.
    pub(crate) fn tree_with(&self, path: &[u8], mode: &str, id: &str) -> String {
        let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let mut entry = (mode.to_owned(), names.pop().unwrap().to_vec(), id.to_owned());
        while let Some(name) = names.pop() {
            let id = self.raw_tree(vec![entry]);
            entry = ("40000".to_owned(), name.to_vec(), id);
        }
        let base = self.git(&["rev-parse", "HEAD:z"]);
        self.raw_tree(vec![entry, ("40000".to_owned(), b"z".to_vec(), base)])
    }

    /// Writes a tree object without git's checks.
    pub(crate) fn raw_tree(&self, mut entries: Vec<(String, Vec<u8>, String)>) -> String {
        // Git compares directories as if their names ended in a slash.
        entries.sort_by_key(|(mode, name, _)| {
            let mut key = name.clone();
            key.extend((mode == "40000").then_some(b'/'));
            key
        });
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(format!("{mode} ").as_bytes());
            bytes.extend_from_slice(&name);
            bytes.push(0);
            let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
            bytes.extend((0..id.len()).step_by(2).map(digits));
        }
        self.git_with(&["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], &bytes)
    }

    /// Commits a tree on top of `HEAD`, without checking it out, as the tag `evil`.
    pub(crate) fn commit_tree(&self, tree: &str) {
        let commit = self.git(&["commit-tree", tree, "-p", "HEAD", "-m", "evil"]);
        self.git(&["update-ref", "refs/tags/evil", &commit]);
    }

    /// Commits a file with any path and mode as the tag `evil`.
    pub(crate) fn commit_path(&self, path: impl AsRef<[u8]>, mode: &str, bytes: &[u8]) {
        let id = self.blob(bytes);
        let tree = self.tree_with(path.as_ref(), mode, &id);
        self.commit_tree(&tree);
    }
}

/// A fake credential, generated here so that none is in the repository.
pub(crate) fn token() -> String {
    let digest = moothall_core::Sha256Hex::of(b"a token of nobody").to_string();
    format!("ghp_{}", &digest[..36])
}

pub(crate) fn lines(count: usize) -> String {
    (0..count).map(|at| format!("value_{at} = compute({at})\n")).collect()
}
