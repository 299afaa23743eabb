//! Reads a git repository that is not trusted, with plumbing commands of `git`.
//!
//! A repository can name programs (hooks, filters, text converters, file system monitors, external
//! diffs, credential helpers) and can change what a command shows (attributes, replaced objects,
//! grafts, included settings, commit graphs). Every command here runs with an empty environment,
//! without the settings of the user and the system, with overrides for settings of the repository
//! that matter, and never reads the working tree: only plumbing commands that print raw entries
//! and objects are used, with NUL-terminated paths. Contents are hashed again, so a damaged or
//! replaced object is noticed.
//!
//! `git` itself reads the repository because every user has it, it knows all formats, and a
//! listing of a commit takes about 3 ms. The `gix` crates would add about 100 packages to the
//! build for the same answers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use moothall_core::gate::{EntryContent, PolicyLayer, PolicyLayerName};
use ring::digest;

use super::object_reader::ObjectReader;

/// Longer answers of commands that print one line are refused.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Longer paths are not possible on any supported system.
const MAX_RECORD_BYTES: u64 = 64 << 10;
const MAX_POLICY_BYTES: u64 = 256 << 10;
const POLICY_PATH: &str = ".moothall/policy.toml";
const TASK_CONTRACT_PATH: &str = "_handoff/TASK_CONTRACT.json";

/// Settings of a repository that could run a program or change an answer.
const OVERRIDES: &[&str] = &[
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.useReplaceRefs=false",
    "core.alternateRefsCommand=",
    "core.pager=cat",
    "core.ignoreCase=false",
    "core.precomposeUnicode=false",
    "core.quotePath=false",
    "diff.ignoreSubmodules=none",
    "diff.renames=false",
    "diff.orderFile=/dev/null",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Variables that a hook gets from git and that select what it must look at. They come from the
/// user's own git process.
const PASSED: &[&str] =
    &["GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"];

/// Why a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no repository at or above a directory.
    #[error("`{0}` is not in a git repository")]
    NotRepository(PathBuf),
    /// There is no `git` in an absolute directory of `PATH`.
    #[error("`git` is not installed, or it is not in an absolute directory of `PATH`")]
    NoGit,
    /// A name is not a commit.
    #[error("`{0}` is not a commit of this repository")]
    UnknownRevision(String),
    /// A policy in the base commit is not a plain text file.
    #[error("`{0}` in the base commit is not a text file of at most 256 KiB")]
    PolicyFile(&'static str),
    /// A command failed.
    #[error("`git {command}` failed: {message}")]
    Command {
        /// The command.
        command: &'static str,
        /// The first line of its error output.
        message: String,
    },
    /// The answer of a command has another form.
    #[error("cannot read the answer of `git {0}`")]
    Answer(&'static str),
    /// A file operation failed.
    #[error("cannot read the repository")]
    Io(#[from] io::Error),
}

/// Variables of the calling process that select git and the repository.
#[derive(Debug, Clone, Default)]
pub struct GitEnvironment {
    /// `PATH`, to find git.
    pub path: OsString,
    /// `GIT_DIR` and others that git sets for hooks.
    pub variables: BTreeMap<&'static str, OsString>,
}

impl GitEnvironment {
    /// Selects the variables that matter.
    pub fn of(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let names = PASSED.iter().chain(&["GIT_DIR", "GIT_WORK_TREE"]);
        let set = |name: &&'static str| {
            let value = get(name).filter(|value| !value.is_empty())?;
            Some((*name, value))
        };
        Self { path: get("PATH").unwrap_or_default(), variables: names.filter_map(set).collect() }
    }
}

/// The id of an object, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId(String);

impl ObjectId {
    /// Parses an id of SHA-1 or SHA-256.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let text = std::str::from_utf8(bytes).ok()?;
        (matches!(bytes.len(), 40 | 64) && bytes.iter().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id that git uses for missing entries.
    pub(crate) fn is_null(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }

    /// Starts the hash of a blob of this size, with the algorithm of this id.
    pub(crate) fn blob_hasher(&self, bytes: u64) -> BlobHasher {
        let algorithm = match self.0.len() {
            40 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            _ => &digest::SHA256,
        };
        let mut context = digest::Context::new(algorithm);
        context.update(format!("blob {bytes}\0").as_bytes());
        BlobHasher(context)
    }
}

/// Hashes the content of a blob.
pub(crate) struct BlobHasher(digest::Context);

impl BlobHasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> ObjectId {
        let hash = self.0.finish();
        ObjectId(hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A changed path as `git diff-tree --raw` prints it. A mode of 0 means that the side is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawChange {
    pub(crate) old_mode: u32,
    pub(crate) new_mode: u32,
    pub(crate) old_id: ObjectId,
    pub(crate) new_id: ObjectId,
    /// `U` is a path with merge conflicts.
    pub(crate) status: u8,
    pub(crate) path: Vec<u8>,
    pub(crate) renamed_from: Option<Vec<u8>>,
}

/// An entry of a tree or of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrackedEntry {
    pub(crate) mode: u32,
    pub(crate) id: ObjectId,
    /// Not checked out, because of a sparse checkout. Only in the index.
    pub(crate) skipped: bool,
}

/// A repository, opened without trusting its settings.
#[derive(Debug)]
pub struct GitRepository {
    git: PathBuf,
    directory: PathBuf,
    work_tree: PathBuf,
    passed: BTreeMap<&'static str, OsString>,
}

impl GitRepository {
    /// Finds the repository of a directory, as git does, or the repository of a hook.
    pub fn discover(from: &Path, environment: &GitEnvironment) -> Result<Self, GitError> {
        let from = fs_err::canonicalize(from)?;
        let named = |name: &str| environment.variables.get(name).map(|value| from.join(value));
        let (directory, work_tree) = match named("GIT_DIR") {
            Some(directory) => (directory, named("GIT_WORK_TREE").unwrap_or_else(|| from.clone())),
            None => find(&from).ok_or_else(|| GitError::NotRepository(from.clone()))?,
        };
        let git = find_git(&environment.path, &work_tree).ok_or(GitError::NoGit)?;
        let passed = PASSED
            .iter()
            .filter_map(|name| {
                let value = environment.variables.get(name)?;
                // Git runs elsewhere, and hooks get relative paths. A list of directories is
                // absolute already.
                let value = match *name {
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES" => value.clone(),
                    _ => from.join(value).into_os_string(),
                };
                Some((*name, value))
            })
            .collect();
        Ok(Self { git, directory, work_tree, passed })
    }

    /// The directory that contains `.git`.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// The directory of the repository's own files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory of the hooks that git runs, by `core.hooksPath` of the repository or of the
    /// user. Reads the user's settings, too, because git will use them.
    pub fn hooks_directory(&self) -> Result<PathBuf, GitError> {
        let mut command = Command::new(&self.git);
        command.env("GIT_DIR", &self.directory).env("GIT_WORK_TREE", &self.work_tree);
        command.args(["rev-parse", "--git-path", "hooks"]).current_dir(&self.work_tree);
        let output = command.stdin(Stdio::null()).output()?;
        let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
        match output.status.success() && !path.is_empty() {
            true => Ok(self.work_tree.join(OsStr::from_bytes(path))),
            false => Err(GitError::Answer("rev-parse")),
        }
    }

    /// A git command that runs nothing of the repository.
    fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.git);
        command
            .env_clear()
            .envs(&self.passed)
            .env("GIT_DIR", directory)
            .env("GIT_WORK_TREE", &self.work_tree)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_GRAFT_FILE", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("LC_ALL", "C")
            .current_dir(&self.work_tree)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for setting in OVERRIDES {
            command.args(["-c", setting]);
        }
        command
    }

    /// The short answer of a command, or `None` if it failed.
    fn answer(&self, directory: &Path, arguments: &[&str]) -> Result<Option<String>, GitError> {
        let mut child = self.command(directory).args(arguments).stderr(Stdio::null()).spawn()?;
        let mut text = String::new();
        if let Some(output) = child.stdout.take() {
            output.take(MAX_ANSWER_BYTES).read_to_string(&mut text)?;
        }
        Ok(child.wait()?.success().then(|| text.trim_end().to_owned()))
    }

    /// The id of a commit.
    pub fn commit(&self, revision: &str) -> Result<ObjectId, GitError> {
        let unknown = || GitError::UnknownRevision(revision.to_owned());
        let wanted = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let answer = self.answer(&self.directory, &arguments)?.ok_or_else(unknown)?;
        ObjectId::parse(answer.as_bytes()).ok_or_else(unknown)
    }

    /// The commit of `HEAD`, or `None` before the first commit.
    pub fn head(&self) -> Result<Option<ObjectId>, GitError> {
        match self.commit("HEAD") {
            Ok(id) => Ok(Some(id)),
            Err(GitError::UnknownRevision(_)) => {
                // A branch without a commit is a name that does not exist yet; anything else is
                // damage, and must not count as an empty repository.
                let unborn = self.answer(&self.directory, &["symbolic-ref", "--quiet", "HEAD"])?;
                let name = unborn.ok_or_else(|| GitError::UnknownRevision("HEAD".to_owned()))?;
                let exists =
                    self.answer(&self.directory, &["show-ref", "--verify", "--quiet", &name])?;
                match exists {
                    Some(_) => Err(GitError::UnknownRevision("HEAD".to_owned())),
                    None => Ok(None),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// The newest common commit of two commits.
    pub fn merge_base(&self, one: &ObjectId, other: &ObjectId) -> Result<ObjectId, GitError> {
        let answer = self.answer(&self.directory, &["merge-base", one.as_str(), other.as_str()])?;
        let first = answer.as_deref().and_then(|text| text.lines().next());
        first
            .and_then(|line| ObjectId::parse(line.as_bytes()))
            .ok_or(GitError::Answer("merge-base"))
    }

    /// The tree of a commit, or the empty tree.
    pub(crate) fn tree(&self, commit: Option<&ObjectId>) -> Result<ObjectId, GitError> {
        let answer = match commit {
            Some(id) => {
                let wanted = format!("{}^{{tree}}", id.as_str());
                self.answer(&self.directory, &["rev-parse", "--verify", "--quiet", &wanted])?
            }
            None => self.answer(&self.directory, &["hash-object", "-t", "tree", "--stdin"])?,
        };
        let id = answer.as_deref().and_then(|text| ObjectId::parse(text.as_bytes()));
        id.ok_or(GitError::Answer("rev-parse"))
    }

    /// The commit that is checked out in a submodule.
    pub(crate) fn submodule_head(&self, path: &OsStr) -> Result<Option<ObjectId>, GitError> {
        let directory = self.work_tree.join(path).join(".git");
        if directory.symlink_metadata().is_err() {
            return Ok(None);
        }
        let answer = self.answer(&directory, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
        let id = answer.as_deref().and_then(|text| ObjectId::parse(text.as_bytes()));
        id.map(Some).ok_or(GitError::Answer("rev-parse"))
    }

    /// Calls `each` with the NUL-terminated records of a command's answer.
    fn records(
        &self,
        command: &'static str,
        arguments: &[&str],
        each: impl FnMut(&[u8]) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        self.records_for(command, arguments, String::new(), each)
    }

    /// Like [`Self::records`], with `input` on standard input.
    fn records_for(
        &self,
        command: &'static str,
        arguments: &[&str],
        input: String,
        mut each: impl FnMut(&[u8]) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let mut child = self
            .command(&self.directory)
            .arg(command)
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()?;
        // Written and read concurrently: a full pipe would block git.
        if let Some(mut pipe) = child.stdin.take() {
            std::thread::spawn(move || {
                // Git may end before it has read everything; its exit code says why.
                let _ = pipe.write_all(input.as_bytes());
            });
        }
        let errors = child.stderr.take();
        let errors = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(errors) = errors {
                // An incomplete message is good enough.
                let _ = errors.take(MAX_RECORD_BYTES).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut read = || -> Result<(), GitError> {
            let Some(output) = child.stdout.take() else { return Ok(()) };
            let mut output = BufReader::with_capacity(1 << 16, output);
            let mut record = Vec::new();
            loop {
                record.clear();
                output.by_ref().take(MAX_RECORD_BYTES).read_until(0, &mut record)?;
                match record.pop() {
                    None => return Ok(()),
                    Some(0) => each(&record)?,
                    Some(_) => return Err(GitError::Answer(command)),
                }
            }
        };
        let read = read();
        if read.is_err() {
            // The process may wait for a reader. It may also have ended already.
            let _ = child.kill();
        }
        let status = child.wait()?;
        let message = errors.join().unwrap_or_default();
        read?;
        if !status.success() {
            let message = message.lines().next().unwrap_or("no message").to_owned();
            return Err(GitError::Command { command, message });
        }
        Ok(())
    }

    /// Lists the differences of two trees.
    pub(crate) fn diff_trees(
        &self,
        old: &ObjectId,
        new: &ObjectId,
        each: impl FnMut(RawChange) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let mut arguments = vec!["-r"];
        arguments.extend(RAW);
        arguments.extend([old.as_str(), new.as_str()]);
        self.raw_changes("diff-tree", &arguments, each)
    }

    /// Lists the differences of a tree and the index. Does not look at the working tree.
    pub(crate) fn diff_index(
        &self,
        tree: &ObjectId,
        each: impl FnMut(RawChange) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let mut arguments = vec!["--cached"];
        arguments.extend(RAW);
        arguments.push(tree.as_str());
        self.raw_changes("diff-index", &arguments, each)
    }

    fn raw_changes(
        &self,
        command: &'static str,
        arguments: &[&str],
        mut each: impl FnMut(RawChange) -> Result<(), GitError>,
    ) -> Result<(), GitError> {
        let mut started: Option<RawChange> = None;
        let mut has_source = false;
        self.records(command, arguments, |record| {
            let Some(mut change) = started.take() else {
                started = Some(raw_change(record).ok_or(GitError::Answer(command))?);
                return Ok(());
            };
            if record.is_empty() {
                return Err(GitError::Answer(command));
            }
            if matches!(change.status, b'R' | b'C') && !has_source {
                change.renamed_from = Some(record.to_vec());
                has_source = true;
                started = Some(change);
                return Ok(());
            }
            has_source = false;
            change.path = record.to_vec();
            each(change)
        })?;
        if started.is_some() { Err(GitError::Answer(command)) } else { Ok(()) }
    }

    /// Lists what each commit of a range changed, compared with each of its parents, with the
    /// commit. Returns whether there are more than `limit` commits, which are not listed.
    pub(crate) fn history(
        &self,
        base: &ObjectId,
        head: &ObjectId,
        limit: usize,
        mut each: impl FnMut(&ObjectId, RawChange),
    ) -> Result<bool, GitError> {
        let range = format!("{}..{}", base.as_str(), head.as_str());
        let count = format!("--max-count={}", limit + 1);
        let mut commits = Vec::new();
        let list = ["rev-list", &count, "--end-of-options", &range];
        let answer = self.answer(&self.directory, &list)?.ok_or(GitError::Answer("rev-list"))?;
        for line in answer.lines() {
            commits.push(ObjectId::parse(line.as_bytes()).ok_or(GitError::Answer("rev-list"))?);
        }
        let has_more = commits.len() > limit;
        // The last one is the head itself, and a single commit has no history.
        if commits.len() < 2 {
            return Ok(false);
        }
        let input: String =
            commits.iter().take(limit).map(|id| format!("{}\n", id.as_str())).collect();
        let arguments = [
            "--stdin",
            "-r",
            "-m",
            "--root",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            "--ignore-submodules=none",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let mut commit: Option<ObjectId> = None;
        let mut started: Option<RawChange> = None;
        self.records_for("diff-tree", &arguments, input, |record| {
            if let Some(mut change) = started.take() {
                change.path = record.to_vec();
                let commit = commit.as_ref().ok_or(GitError::Answer("diff-tree"))?;
                each(commit, change);
            } else if record.starts_with(b":") {
                started = Some(raw_change(record).ok_or(GitError::Answer("diff-tree"))?);
            } else {
                // With several parents, the commit is repeated for each of them.
                let id = record.split(|byte| *byte == b' ').next().unwrap_or_default();
                commit = Some(ObjectId::parse(id).ok_or(GitError::Answer("diff-tree"))?);
            }
            Ok(())
        })?;
        Ok(has_more)
    }

    /// Lists the paths of a tree.
    pub(crate) fn tree_paths(
        &self,
        tree: &ObjectId,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let arguments = ["-r", "-z", "--name-only", "--full-tree", tree.as_str()];
        self.records("ls-tree", &arguments, |record| {
            each(record);
            Ok(())
        })
    }

    /// The entries of a tree.
    pub(crate) fn tree_entries(
        &self,
        tree: &ObjectId,
    ) -> Result<BTreeMap<Vec<u8>, TrackedEntry>, GitError> {
        let mut entries = BTreeMap::new();
        let arguments = ["-r", "-z", "--full-tree", tree.as_str()];
        self.records("ls-tree", &arguments, |record| {
            // MODE SP TYPE SP ID TAB PATH
            let (head, path) = split_once(record, b'\t').ok_or(GitError::Answer("ls-tree"))?;
            let mut words = head.split(|byte| *byte == b' ');
            let entry = entry_of(words.next(), words.nth(1), false);
            entries.insert(path.to_vec(), entry.ok_or(GitError::Answer("ls-tree"))?);
            Ok(())
        })?;
        Ok(entries)
    }

    /// The entries of the index, without those of unfinished merges.
    pub(crate) fn index_entries(&self) -> Result<BTreeMap<Vec<u8>, TrackedEntry>, GitError> {
        let mut entries = BTreeMap::new();
        self.records("ls-files", &["-z", "-s", "-t"], |record| {
            // TAG SP MODE SP ID SP STAGE TAB PATH
            let (head, path) = split_once(record, b'\t').ok_or(GitError::Answer("ls-files"))?;
            let mut words = head.split(|byte| *byte == b' ');
            let skipped = words.next() == Some(b"S");
            let entry = entry_of(words.next(), words.next(), skipped);
            let entry = entry.ok_or(GitError::Answer("ls-files"))?;
            if words.next() == Some(b"0") {
                entries.insert(path.to_vec(), entry);
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// Opens the object store for reading.
    pub(crate) fn objects(&self) -> Result<ObjectReader, GitError> {
        ObjectReader::start(|| self.command(&self.directory))
    }

    /// The policy layers in a commit: what a change cannot influence. `is_trusted` says whether a
    /// person trusted a text.
    pub fn policy_layers(
        &self,
        commit: Option<&ObjectId>,
        is_trusted: impl Fn(&str) -> io::Result<bool>,
    ) -> Result<Vec<PolicyLayer>, GitError> {
        let tree = self.tree(commit)?;
        let mut found = Vec::new();
        let arguments = ["-z", "--full-tree", tree.as_str(), "--", POLICY_PATH, TASK_CONTRACT_PATH];
        self.records("ls-tree", &arguments, |record| {
            let (head, path) = split_once(record, b'\t').ok_or(GitError::Answer("ls-tree"))?;
            let mut words = head.split(|byte| *byte == b' ');
            let entry = entry_of(words.next(), words.nth(1), false);
            found.push((path.to_vec(), entry.ok_or(GitError::Answer("ls-tree"))?));
            Ok(())
        })?;
        let mut layers = Vec::new();
        for (path, entry) in found {
            let (name, shown) = match path.as_slice() == POLICY_PATH.as_bytes() {
                true => (PolicyLayerName::Workspace, POLICY_PATH),
                false => (PolicyLayerName::Task, TASK_CONTRACT_PATH),
            };
            let is_file = matches!(entry.mode, 0o100_644 | 0o100_755);
            let content = match is_file {
                true => self.objects()?.read(&entry.id, MAX_POLICY_BYTES)?,
                false => EntryContent::Unreadable,
            };
            // An unreadable policy must not count as permissive.
            let EntryContent::Bytes(bytes) = content else {
                return Err(GitError::PolicyFile(shown));
            };
            let text = String::from_utf8(bytes).map_err(|_| GitError::PolicyFile(shown))?;
            let trusted = name == PolicyLayerName::Workspace && is_trusted(&text)?;
            layers.push(PolicyLayer { name, text, trusted });
        }
        Ok(layers)
    }
}

/// Options that print raw entries, whatever the settings of the repository say.
const RAW: [&str; 9] = [
    "--raw",
    "-z",
    "--no-abbrev",
    "-M50%",
    "-l200",
    "--ignore-submodules=none",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
];

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

fn mode_of(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()
}

fn entry_of(mode: Option<&[u8]>, id: Option<&[u8]>, skipped: bool) -> Option<TrackedEntry> {
    Some(TrackedEntry { mode: mode_of(mode?)?, id: ObjectId::parse(id?)?, skipped })
}

/// `:MODE SP MODE SP ID SP ID SP STATUS`
fn raw_change(record: &[u8]) -> Option<RawChange> {
    let mut words = record.strip_prefix(b":")?.split(|byte| *byte == b' ');
    let (old_mode, new_mode) = (mode_of(words.next()?)?, mode_of(words.next()?)?);
    let (old_id, new_id) = (ObjectId::parse(words.next()?)?, ObjectId::parse(words.next()?)?);
    let status = *words.next()?.first()?;
    (words.next().is_none() && status.is_ascii_uppercase()).then_some(RawChange {
        old_mode,
        new_mode,
        old_id,
        new_id,
        status,
        path: Vec::new(),
        renamed_from: None,
    })
}

/// The repository of a directory: its own files, and the directory that contains `.git`.
fn find(from: &Path) -> Option<(PathBuf, PathBuf)> {
    for directory in from.ancestors() {
        let own = directory.join(".git");
        let Ok(found) = own.metadata() else { continue };
        if found.is_dir() && own.join("HEAD").symlink_metadata().is_ok() {
            return Some((own, directory.to_owned()));
        }
        if found.is_file() {
            // A linked worktree or a submodule: the file names the directory.
            let mut text = Vec::new();
            fs_err::File::open(&own).ok()?.take(4096).read_to_end(&mut text).ok()?;
            let named = text.strip_prefix(b"gitdir: ")?;
            let end = named.iter().position(|byte| *byte == b'\n').unwrap_or(named.len());
            return Some((directory.join(OsStr::from_bytes(&named[..end])), directory.to_owned()));
        }
    }
    None
}

/// Finds git. Relative directories of `PATH`, and those inside of the repository, could contain a
/// program of the repository.
fn find_git(path: &OsStr, work_tree: &Path) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .filter(|directory| {
            fs_err::canonicalize(directory).is_ok_and(|real| !real.starts_with(work_tree))
        })
        .map(|directory| directory.join("git"))
        .find(|program| program.is_file())
}
