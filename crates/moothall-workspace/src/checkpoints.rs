//! Signed checkpoints of the journal, in the C2SP signed note format.
//!
//! A checkpoint stored elsewhere proves that nothing before it was rewritten or truncated.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moothall_core::Sha256Hex;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::error::DraftError;
use super::journal_head::JournalHead;

const NAME: &str = "moothall-audit";
/// Prefix of the line that names the previous note. Older notes have no such line.
const PREVIOUS: &str = "previous ";
/// Signature type of Ed25519 in signed notes.
const ED25519_KIND: u8 = 1;

/// The content of a signed note about one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalCheckpoint {
    pub(crate) hash: Sha256Hex,
    /// Sequence number of the previous checkpoint, or 0 for the first. Unknown in older notes.
    pub(crate) previous: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct CheckpointSigner {
    pair: Ed25519KeyPair,
    folder: PathBuf,
}

impl CheckpointSigner {
    /// Opens the signing key of this store, or creates one.
    pub(crate) fn open(state: &Path) -> Result<Self, DraftError> {
        let path = key_path(state);
        if !path.exists() {
            let make = || -> io::Result<()> {
                let keys = state.join("keys");
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&keys)?;
                let key_pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
                    .map_err(|_| io::Error::other("no randomness available"))?;
                write_private(&path, key_pair.as_ref())
            };
            make().map_err(DraftError::io("cannot create the journal key"))?;
        }
        Self::open_existing(state)
    }

    pub(crate) fn open_existing(state: &Path) -> Result<Self, DraftError> {
        let what = "cannot read the journal key";
        let bytes = fs_err::read(key_path(state)).map_err(DraftError::io(what))?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes)
            .map_err(|_| DraftError::io(what)(io::Error::other("not an Ed25519 key")))?;
        let folder = state.join("checkpoints");
        Ok(Self { pair, folder })
    }

    /// The public key in the format of signed note verifiers.
    pub(crate) fn public(&self) -> String {
        let mut key = vec![ED25519_KIND];
        key.extend_from_slice(self.pair.public_key().as_ref());
        let id: String = self.id().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{NAME}+{id}+{}", STANDARD.encode(key))
    }

    /// Signs the head of the journal and writes the note. It names the previous note, so a
    /// missing note is detected.
    pub(crate) fn checkpoint(&self, head: JournalHead) -> Result<(), DraftError> {
        let hash = STANDARD.encode(head.hash.as_bytes());
        let previous = self.seqs().filter(|seq| *seq < head.seq).max().unwrap_or(0);
        let text = format!("{NAME}\n{}\n{hash}\n{PREVIOUS}{previous}\n", head.seq);
        let mut signature = self.id().to_vec();
        signature.extend_from_slice(self.pair.sign(text.as_bytes()).as_ref());
        let note = format!("{text}\n\u{2014} {NAME} {}\n", STANDARD.encode(signature));
        let write = || -> io::Result<()> {
            fs_err::create_dir_all(&self.folder)?;
            let path = self.path(head.seq);
            let staged = path.with_extension("new");
            fs_err::write(&staged, note)?;
            fs_err::File::open(&staged)?.sync_all()?;
            fs_err::rename(staged, path)?;
            fs_err::File::open(&self.folder)?.sync_all()
        };
        write().map_err(DraftError::io("cannot write a checkpoint"))
    }

    /// Sequence number and time of the last checkpoint, in milliseconds since 1970, or zeros if
    /// there is none. Only used to decide when the next one is due.
    pub(crate) fn last(&self) -> (u64, u64) {
        let Some(seq) = self.seqs().max() else { return (0, 0) };
        let written = fs_err::metadata(self.path(seq)).and_then(|file| file.modified());
        let since = written.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        (seq, since.map_or(0, |since| since.as_millis() as u64))
    }

    /// Sequence numbers of all checkpoints, from the file names, unordered.
    fn seqs(&self) -> impl Iterator<Item = u64> {
        let entries = fs_err::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            entry.file_name().to_str()?.strip_suffix(".note")?.parse::<u64>().ok()
        })
    }

    fn path(&self, seq: u64) -> PathBuf {
        self.folder.join(format!("{seq:012}.note"))
    }

    /// All checkpoints by sequence number. A note that is not signed with our key is an error,
    /// because someone else put it there.
    pub(crate) fn notes(&self) -> Result<BTreeMap<u64, JournalCheckpoint>, DraftError> {
        let read = || -> io::Result<BTreeMap<u64, JournalCheckpoint>> {
            let mut notes = BTreeMap::new();
            if !self.folder.exists() {
                return Ok(notes);
            }
            for entry in fs_err::read_dir(&self.folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "note") {
                    let note = fs_err::read_to_string(&path)?;
                    let (seq, checkpoint) = self.read(&note).ok_or_else(|| {
                        io::Error::other(format!("{} is not signed by this store", path.display()))
                    })?;
                    notes.insert(seq, checkpoint);
                }
            }
            Ok(notes)
        };
        read().map_err(DraftError::io("cannot read a checkpoint"))
    }

    fn read(&self, note: &str) -> Option<(u64, JournalCheckpoint)> {
        let (text, signatures) = note.split_once("\n\n")?;
        let text = format!("{text}\n");
        let signed = signatures.strip_prefix(&format!("\u{2014} {NAME} "))?.strip_suffix('\n')?;
        let signed = STANDARD.decode(signed).ok()?;
        let (id, signature) = signed.split_at_checked(4)?;
        let key = UnparsedPublicKey::new(&ED25519, self.pair.public_key().as_ref());
        key.verify(text.as_bytes(), signature).ok().filter(|()| id == self.id())?;
        let mut lines = text.lines();
        let (name, seq, hash) = (lines.next()?, lines.next()?, lines.next()?);
        let hash = <[u8; 32]>::try_from(STANDARD.decode(hash).ok()?).ok()?;
        let previous = lines.next().and_then(|line| line.strip_prefix(PREVIOUS)?.parse().ok());
        let checkpoint = JournalCheckpoint { hash: Sha256Hex::from_bytes(hash), previous };
        (name == NAME).then_some((seq.parse().ok()?, checkpoint))
    }

    fn id(&self) -> [u8; 4] {
        let hash = Sha256::new()
            .chain_update(NAME)
            .chain_update(b"\n")
            .chain_update([ED25519_KIND])
            .chain_update(self.pair.public_key())
            .finalize();
        [hash[0], hash[1], hash[2], hash[3]]
    }
}

fn key_path(state: &Path) -> PathBuf {
    state.join("keys/checkpoint.pk8")
}

/// Writes a file atomically, readable only by its owner.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut staged = NamedTempFile::new_in(path.parent().unwrap_or_else(|| Path::new(".")))?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    match staged.persist_noclobber(path) {
        // If two processes start at the same time, the first one wins.
        Err(failed) if failed.error.kind() != io::ErrorKind::AlreadyExists => Err(failed.error),
        _ => Ok(()),
    }
}
