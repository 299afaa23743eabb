//! Files that contain API keys, which only their owner can read.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use moothall_models::ApiKey;
use toml_edit::DocumentMut;

use super::to_secret;
use crate::error::CliError;

/// Larger files cannot be key files and were named by mistake.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// A line of `keys.toml`.
#[derive(Debug)]
pub(crate) enum StoredKey {
    /// `provider = "key"`.
    Text(ApiKey),
    /// `provider = { keychain = true }`: the key is in the keychain of the system.
    Keychain,
}

/// Reads the lines of `keys.toml`; none if it does not exist.
pub(crate) fn read_keys_file(path: &Path) -> Result<BTreeMap<String, StoredKey>, CliError> {
    match read_private_file(path)? {
        Some(text) => parse_keys_file(path, &text),
        None => Ok(BTreeMap::new()),
    }
}

/// The parser's message is omitted because it may quote the line.
fn parse_keys_file(path: &Path, text: &str) -> Result<BTreeMap<String, StoredKey>, CliError> {
    let wrong = |place: String| {
        CliError::usage(format!("{place}: expected `provider = \"key\"`"))
            .with_hint("put the key in double quotes")
    };
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count()
        });
        wrong(format!("{}:{line}", path.display()))
    })?;
    let mut keys = BTreeMap::new();
    for (provider, value) in table {
        let place = format!("`{provider}` in {}", path.display());
        let key = match value {
            toml::Value::String(key) => to_secret(&key, &place)?.map(StoredKey::Text),
            toml::Value::Table(table) if is_keychain_marker(&table) => Some(StoredKey::Keychain),
            _ => return Err(wrong(place)),
        };
        keys.extend(key.map(|key| (provider, key)));
    }
    Ok(keys)
}

fn is_keychain_marker(table: &toml::Table) -> bool {
    table.len() == 1 && table.get("keychain").and_then(toml::Value::as_bool) == Some(true)
}

/// Replaces or removes the line of a provider; the rest of the file stays unchanged.
pub(crate) fn write_keys_file(
    path: &Path,
    provider: &str,
    key: Option<&StoredKey>,
) -> Result<(), CliError> {
    // Reports an accessible or malformed file before it is replaced.
    read_keys_file(path)?;
    let before = read_private_file(path)?.unwrap_or_default();
    let failed = |error: io::Error| {
        CliError::failed(format!("cannot write {}", path.display())).with_source(error)
    };
    let mut document: DocumentMut = before.parse().map_err(|_| {
        CliError::usage(format!("{} is not valid TOML", path.display()))
            .with_hint("correct the file, or move it away")
    })?;
    match key {
        Some(StoredKey::Text(key)) => document[provider] = toml_edit::value(key.expose()),
        Some(StoredKey::Keychain) => {
            let mut marker = toml_edit::InlineTable::new();
            marker.insert("keychain", true.into());
            document[provider] = toml_edit::value(marker);
        }
        None => {
            document.remove(provider);
        }
    }
    replace_private_file(path, &document.to_string()).map_err(failed)
}

/// Writes to a temporary file, which only its owner can read, and renames it.
fn replace_private_file(path: &Path, text: &str) -> io::Result<()> {
    let target = match fs_err::canonicalize(path) {
        // Symbolic links are kept.
        Ok(target) => target,
        Err(_) => std::path::absolute(path)?,
    };
    let folder = target.parent().map_or_else(PathBuf::new, Path::to_owned);
    fs_err::create_dir_all(&folder)?;
    let mut fresh = tempfile::NamedTempFile::new_in(&folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&target).map_err(|error| error.error)?;
    Ok(())
}

/// Reads a file that must belong to this user and be inaccessible to others. Returns `None` if it
/// does not exist.
pub(crate) fn read_private_file(path: &Path) -> Result<Option<String>, CliError> {
    const HINT: &str = "use a plain text file that contains only API keys";
    let shown = path.display();
    let not_a_file = || CliError::usage(format!("{shown} is not a regular file")).with_hint(HINT);
    let unreadable = |error: io::Error| CliError::usage("cannot read the keys").with_source(error);
    // Checked before opening as well, because opening a pipe would block.
    match fs_err::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(not_a_file());
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    }
    let file = fs_err::File::open(path).map_err(unreadable)?;
    // Check the open file, because the path may refer to another file by now.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    check_private(path, metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(
            CliError::usage(format!("{shown} is too large for an API key file")).with_hint(HINT)
        );
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    Ok(Some(text))
}

/// A separate function, because only root could create a file of another user in a test.
pub(crate) fn check_private(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), CliError> {
    let shown = path.display();
    if owner != user {
        return Err(CliError::usage(format!(
            "{shown} contains API keys and belongs to another user"
        ))
        .with_hint("create your own copy, and run `chmod 600` on it"));
    }
    if mode & 0o077 != 0 {
        return Err(CliError::usage(format!(
            "{shown} contains API keys and is accessible to other users"
        ))
        .with_hint(format!("run `chmod 600 {shown}`")));
    }
    Ok(())
}
