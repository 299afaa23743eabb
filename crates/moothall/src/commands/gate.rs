//! `moothall gate`: judges a git diff by the policy of the commit before it.

mod hook;
mod report;

use std::io::Read as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use moothall_core::gate::{CheckResults, MAX_PATCH_BYTES, Policy, PolicyLayer, PolicyLayerName};
use moothall_workspace::{
    GitDiffSelection, GitEnvironment, GitError, GitPatchError, GitRepository, ObjectId,
    is_policy_trusted, judge_git_diff, judge_git_patch, today,
};

use self::report::GateReportPage;
use super::draft::exit_of;
use super::draft::store::options_of;
use crate::args::{GateArgs, GateCommand, GlobalArgs};
use crate::config;
use crate::error::{CliError, CliExit};
use crate::{logging, terminal};

/// What to judge, from the flags.
enum GateSubject {
    Diff(GitDiffSelection),
    Patch(Vec<u8>),
}

pub(crate) fn run(global: &GlobalArgs, args: &GateArgs) -> anyhow::Result<CliExit> {
    let environment = GitEnvironment::of(|name| std::env::var_os(name));
    let repository = GitRepository::discover(&args.workspace, &environment).map_err(failed)?;
    if let Some(GateCommand::Install { remove }) = args.command {
        if args.has_selection() {
            return Err(CliError::usage("`install` does not judge anything")
                .with_hint("run `moothall gate install` without other options")
                .into());
        }
        return hook::run(&repository, remove);
    }
    let (subject, base) = subject_of(&repository, args)?;
    let policy = policy_of(global, &repository, base.as_ref())?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = today(since.as_millis() as u64);
    let results = CheckResults::default();
    let looked = (!args.skip_checks).then_some(&results);
    let decision = match &subject {
        GateSubject::Diff(selection) => {
            judge_git_diff(&repository, selection, &policy, looked, day).map_err(failed)?
        }
        GateSubject::Patch(text) => {
            judge_git_patch(&repository, base.as_ref(), text, &policy, looked, day)
                .map_err(patch_failed)?
        }
    };
    let page = GateReportPage { decision: &decision, base: base.as_ref(), notes: &policy.notes };
    terminal::print(&page.render(args.format()))?;
    Ok(exit_of(decision.action))
}

/// What to judge, and the commit before it.
fn subject_of(
    repository: &GitRepository,
    args: &GateArgs,
) -> Result<(GateSubject, Option<ObjectId>), CliError> {
    if let Some(file) = &args.patch {
        let base = match args.base.as_str() {
            "HEAD" => repository.head(),
            name => repository.commit(name).map(Some),
        };
        return Ok((GateSubject::Patch(read_patch_file(file)?), base.map_err(failed)?));
    }
    let Some(range) = &args.range else {
        let selection = match args.staged {
            true => GitDiffSelection::Staged,
            false => GitDiffSelection::Worktree,
        };
        return Ok((GateSubject::Diff(selection), repository.head().map_err(failed)?));
    };
    let parts = range.split_once("...").map(|(from, to)| (from, to, true));
    let parts = parts.or_else(|| range.split_once("..").map(|(from, to)| (from, to, false)));
    let Some((from, to, from_common)) = parts else {
        return Err(CliError::usage(format!("`{range}` is not a range of commits"))
            .with_hint("use `A..B`, such as `moothall gate main..HEAD`"));
    };
    let commit = |name: &str| match name {
        "" => repository.commit("HEAD"),
        name => repository.commit(name),
    };
    let (from, head) = (commit(from).map_err(failed)?, commit(to).map_err(failed)?);
    let base = match from_common {
        true => repository.merge_base(&from, &head).map_err(failed)?,
        false => from,
    };
    let selection = GitDiffSelection::Commits { base: base.clone(), head };
    Ok((GateSubject::Diff(selection), Some(base)))
}

fn read_patch_file(file: &Path) -> Result<Vec<u8>, CliError> {
    let unreadable =
        |error: std::io::Error| CliError::usage("cannot read the patch").with_source(error);
    let source: Box<dyn std::io::Read> = match file == Path::new("-") {
        true => Box::new(std::io::stdin()),
        false => Box::new(fs_err::File::open(file).map_err(unreadable)?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_PATCH_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// The policy of the user and of the base commit. Policies in the change itself have no effect.
fn policy_of(
    global: &GlobalArgs,
    repository: &GitRepository,
    base: Option<&ObjectId>,
) -> Result<Policy, CliError> {
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    logging::start(&loaded.resolved.config.log, global.verbose);
    let options = options_of(global.config.as_deref(), &loaded, repository.work_tree())?;
    let mut layers = Vec::new();
    if let Some(path) = &options.organisation_policy {
        match fs_err::read_to_string(path) {
            Ok(text) => layers.push(PolicyLayer::new(PolicyLayerName::Organisation, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            // An unreadable policy must not count as permissive.
            Err(error) => {
                return Err(CliError::usage("cannot read a policy").with_source(error));
            }
        }
    }
    let is_trusted = |text: &str| is_policy_trusted(&options.state, text);
    layers.extend(repository.policy_layers(base, is_trusted).map_err(failed)?);
    Policy::of(&layers).map_err(|fault| {
        CliError::usage(fault.to_string()).with_hint(
            "nothing is judged while the policy of the base commit is invalid; fix it in a commit \
             of its own and review that commit yourself",
        )
    })
}

fn failed(error: GitError) -> CliError {
    let hint = match &error {
        GitError::NotRepository(_) => "use `--workspace DIR` with a directory of a repository",
        GitError::NoGit => "install git",
        GitError::UnknownRevision(_) => {
            "use a name that `git log` accepts; a shallow clone may not have the commit \
             (`git fetch --unshallow`)"
        }
        GitError::PolicyFile(_) => "the file must be a plain text file, not a link",
        GitError::Command { .. } | GitError::Answer(_) | GitError::Io(_) => {
            return CliError::new(CliExit::Failed, "cannot read the repository")
                .with_hint("check it with `git fsck`")
                .with_source(error);
        }
    };
    CliError::usage(error.to_string()).with_hint(hint)
}

fn patch_failed(error: GitPatchError) -> CliError {
    match error {
        GitPatchError::Git(error) => failed(error),
        GitPatchError::Patch(_) => CliError::usage(error.to_string()).with_hint(
            "use the output of `git diff --binary` or `git format-patch`, and `--base COMMIT` for \
             the commit that it applies to",
        ),
    }
}
