//! Reads blobs of a git repository that is not trusted, and checks their hashes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use moothall_core::gate::EntryContent;

use super::git_repository::{GitError, ObjectId};

/// Longer answers about an object are refused.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// Reads objects by id.
pub(crate) struct ObjectReader {
    sizes: BatchProcess,
    contents: BatchProcess,
}

impl ObjectReader {
    /// Starts the processes that read objects, with commands that run nothing of the repository.
    pub(crate) fn start(command: impl Fn() -> Command) -> Result<Self, GitError> {
        Ok(Self {
            sizes: BatchProcess::start(command(), "--batch-check")?,
            contents: BatchProcess::start(command(), "--batch")?,
        })
    }

    /// The content of a blob of at most `limit` bytes. Content that does not have the id's hash is
    /// unreadable.
    pub(crate) fn read(&mut self, id: &ObjectId, limit: u64) -> Result<EntryContent, GitError> {
        if id.is_null() {
            return Ok(EntryContent::Unreadable);
        }
        let Some(size) = self.sizes.ask(id)? else { return Ok(EntryContent::Unreadable) };
        if size > limit {
            return Ok(EntryContent::TooLarge(size));
        }
        if self.contents.ask(id)? != Some(size) {
            return Err(GitError::Answer("cat-file"));
        }
        let bytes = self.contents.take(size)?;
        let mut hasher = id.blob_hasher(size);
        hasher.update(&bytes);
        let is_same = hasher.finish() == *id;
        Ok(if is_same { EntryContent::Bytes(bytes) } else { EntryContent::Unreadable })
    }
}

/// A running `git cat-file`.
struct BatchProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BatchProcess {
    fn start(mut command: Command, mode: &str) -> Result<Self, GitError> {
        command.args(["cat-file", mode]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or(GitError::Answer("cat-file"))?;
        Ok(Self { child, input, output: BufReader::with_capacity(1 << 16, output) })
    }

    /// The size of a blob, or `None` if there is no such blob.
    fn ask(&mut self, id: &ObjectId) -> Result<Option<u64>, GitError> {
        self.input.write_all(format!("{}\n", id.as_str()).as_bytes())?;
        self.input.flush()?;
        let mut line = String::new();
        self.output.by_ref().take(MAX_RECORD_BYTES).read_line(&mut line)?;
        let mut words = line.trim_end().split(' ');
        if words.next() != Some(id.as_str()) {
            return Err(GitError::Answer("cat-file"));
        }
        match (words.next(), words.next()) {
            (Some("blob"), Some(size)) => {
                size.parse().map(Some).map_err(|_| GitError::Answer("cat-file"))
            }
            // Anything but a blob has no content that could be judged.
            (Some("missing"), None) | (Some("tree" | "commit" | "tag"), Some(_)) => Ok(None),
            _ => Err(GitError::Answer("cat-file")),
        }
    }

    fn take(&mut self, size: u64) -> Result<Vec<u8>, GitError> {
        let mut bytes = Vec::new();
        self.output.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        match bytes.pop() {
            Some(b'\n') if bytes.len() as u64 == size => Ok(bytes),
            _ => Err(GitError::Answer("cat-file")),
        }
    }
}

impl Drop for BatchProcess {
    fn drop(&mut self) {
        // It ends by itself when its input is closed, but a damaged one may not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl std::fmt::Debug for BatchProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BatchProcess({})", self.child.id())
    }
}
