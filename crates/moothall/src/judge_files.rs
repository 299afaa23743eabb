//! Reads and writes `judges.toml`: errors of models that `moothall eval` measured.

use std::path::{Path, PathBuf};

use moothall_core::Sha256Hex;
use moothall_core::benchmark::{JudgeFile, JudgeMeasurement};
use moothall_core::consult::ConsultInput;

use crate::config::LoadedConfig;
use crate::error::CliError;

/// The file in the configuration directory.
const FILE_NAME: &str = "judges.toml";

const MAX_BYTES: usize = 1 << 20;

/// Where measured errors of the panel's models come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JudgeFileSource {
    /// The file in the user's configuration directory, if there is one.
    ConfigFolder,
    /// A named file, which must have an entry for the models.
    File(PathBuf),
    /// None: the input says what to use.
    Input,
}

impl JudgeFileSource {
    /// Sets the allowances of a run whose panel was measured.
    pub(crate) fn apply(
        &self,
        loaded: &LoadedConfig,
        input: &mut ConsultInput,
    ) -> Result<(), CliError> {
        let path = match self {
            Self::Input => return Ok(()),
            Self::File(path) => path.clone(),
            Self::ConfigFolder => default_path(loaded),
        };
        let models = input.panel_model_names();
        let Some(plan) = &mut input.committee.verdict else {
            return match self {
                Self::File(_) => Err(CliError::usage("a run without a panel has no judges")
                    .with_hint("use `--verdict full`, or omit `--judges`")),
                _ => Ok(()),
            };
        };
        let Some((file, sha256)) = read(&path)? else {
            return match self {
                Self::File(_) => Err(missing(&path)),
                _ => Ok(()),
            };
        };
        plan.allowances = file.allowances(&models, sha256);
        if plan.allowances.is_none() && matches!(self, Self::File(_)) {
            let mut names = models;
            names.sort();
            names.dedup();
            let message = format!("{} has no entry for {}", path.display(), names.join(", "));
            let flags: Vec<String> = names.iter().map(|name| format!(" --panel {name}")).collect();
            return Err(CliError::usage(message).with_hint(format!(
                "measure them with `moothall eval{} --write {}`",
                flags.join(""),
                path.display()
            )));
        }
        Ok(())
    }
}

pub(crate) fn default_path(loaded: &LoadedConfig) -> PathBuf {
    loaded.locations.folders.config.join(FILE_NAME)
}

fn missing(path: &Path) -> CliError {
    CliError::usage(format!("no file `{}`", path.display()))
        .with_hint("`moothall eval --write FILE` writes one")
}

/// The file and the hash of its bytes; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<(JudgeFile, Sha256Hex)>, CliError> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(CliError::usage("cannot read measured judges").with_source(error));
        }
    };
    parse(path, &bytes).map(|file| Some((file, Sha256Hex::of(&bytes))))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<JudgeFile, CliError> {
    let invalid = || CliError::usage(format!("{} is not a valid judges file", path.display()));
    let hint = "write it again with `moothall eval --write FILE`";
    let text =
        str::from_utf8(bytes).map_err(|error| invalid().with_source(error).with_hint(hint))?;
    if bytes.len() > MAX_BYTES {
        return Err(invalid().with_hint(hint));
    }
    let file: JudgeFile =
        toml::from_str(text).map_err(|error| invalid().with_source(error).with_hint(hint))?;
    match file.is_valid() {
        true => Ok(file),
        false => Err(invalid().with_hint(format!("errors are at most {}", JudgeFile::MAX_ERROR))),
    }
}

/// Adds a measurement to a file, which is created if necessary, and returns the hash of its bytes.
pub(crate) fn write(path: &Path, measured: JudgeMeasurement) -> Result<Sha256Hex, CliError> {
    let mut file = read(path)?.map(|(file, _)| file).unwrap_or_default();
    file.replace(measured);
    let cannot = |error| CliError::failed("cannot write measured judges").with_source(error);
    let text = toml::to_string(&file)
        .map_err(|error| CliError::failed("cannot write measured judges").with_source(error))?;
    let text = format!(
        "# Errors of models, in thousandths of the spread of true values, measured by `moothall eval`.\n\n{text}"
    );
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs_err::create_dir_all(folder).map_err(cannot)?;
    }
    fs_err::write(path, &text).map_err(cannot)?;
    Ok(Sha256Hex::of(text.as_bytes()))
}

#[cfg(test)]
#[path = "judge_files_tests.rs"]
mod tests;
