//! Signed checkpoints of the journal, in the text form of C2SP's signed notes.
//!
//! A checkpoint that is kept elsewhere shows that nothing before it was rewritten or cut off.

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
use super::head::Head;

const NAME: &str = "moothall-audit";
/// Begins the line of a note that names the note before it; older notes have no such line.
const PREVIOUS: &str = "previous ";
/// The number of Ed25519 among the kinds of signatures.
const ED25519_KIND: u8 = 1;

/// What a signed note says about one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// The hash of the record.
    pub(super) hash: Sha256Hex,
    /// The record of the checkpoint before this one, 0 for the first; unknown in older notes.
    pub(super) previous: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Signer {
    pair: Ed25519KeyPair,
    folder: PathBuf,
}

impl Signer {
    /// The key of this store; made when there is none.
    pub(super) fn open(state: &Path) -> Result<Self, DraftError> {
        let path = key_path(state);
        if !path.exists() {
            let make = || -> io::Result<()> {
                let keys = state.join("keys");
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&keys)?;
                let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
                    .map_err(|_| io::Error::other("no randomness"))?;
                write_private(&path, made.as_ref())
            };
            make().map_err(DraftError::io("the key of the journal cannot be made"))?;
        }
        Self::open_existing(state)
    }

    pub(super) fn open_existing(state: &Path) -> Result<Self, DraftError> {
        let what = "the key of the journal cannot be read";
        let bytes = fs_err::read(key_path(state)).map_err(DraftError::io(what))?;
        let pair = Ed25519KeyPair::from_pkcs8(&bytes)
            .map_err(|_| DraftError::io(what)(io::Error::other("not a key")))?;
        let folder = state.join("checkpoints");
        Ok(Self { pair, folder })
    }

    /// The public key in the form that verifiers of signed notes read.
    pub(super) fn public(&self) -> String {
        let mut key = vec![ED25519_KIND];
        key.extend_from_slice(self.pair.public_key().as_ref());
        let id: String = self.id().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{NAME}+{id}+{}", STANDARD.encode(key))
    }

    /// Signs where the chain stands, and writes it down. The note names the one before it, so that
    /// a note that is missing in between is found.
    pub(super) fn checkpoint(&self, head: Head) -> Result<(), DraftError> {
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
        write().map_err(DraftError::io("a checkpoint cannot be written"))
    }

    /// The record of the last checkpoint and when it was written, in milliseconds since 1970; zeros
    /// where there is none. Only to know when the next one is due.
    pub(super) fn last(&self) -> (u64, u64) {
        let Some(seq) = self.seqs().max() else { return (0, 0) };
        let written = fs_err::metadata(self.path(seq)).and_then(|file| file.modified());
        let since = written.ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        (seq, since.map_or(0, |since| since.as_millis() as u64))
    }

    /// The records that have a checkpoint, by the names of the files, in no order.
    fn seqs(&self) -> impl Iterator<Item = u64> {
        let entries = fs_err::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            entry.file_name().to_str()?.strip_suffix(".note")?.parse::<u64>().ok()
        })
    }

    fn path(&self, seq: u64) -> PathBuf {
        self.folder.join(format!("{seq:012}.note"))
    }

    /// All checkpoints by the record that each names. One whose signature is not ours is an error,
    /// because somebody put it there.
    pub(super) fn notes(&self) -> Result<BTreeMap<u64, Checkpoint>, DraftError> {
        let read = || -> io::Result<BTreeMap<u64, Checkpoint>> {
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
        read().map_err(DraftError::io("a checkpoint cannot be read"))
    }

    fn read(&self, note: &str) -> Option<(u64, Checkpoint)> {
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
        let checkpoint = Checkpoint { hash: Sha256Hex::from_bytes(hash), previous };
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

/// Writes a file that only its owner reads, all of it or nothing.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut staged = NamedTempFile::new_in(path.parent().unwrap_or_else(|| Path::new(".")))?;
    staged.write_all(bytes)?;
    staged.as_file().sync_all()?;
    match staged.persist_noclobber(path) {
        // The first one wins where two start at once.
        Err(lost) if lost.error.kind() != io::ErrorKind::AlreadyExists => Err(lost.error),
        _ => Ok(()),
    }
}
