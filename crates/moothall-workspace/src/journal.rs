//! The journal: one JSON line per event, each with the hash of the previous line.
//!
//! A line is `{"seq":n,"prev":"…",…,"hash":"…"}`. The hash covers the bytes before `,"hash"`, so
//! checking a line does not depend on JSON serialization. An incomplete last line is moved to a
//! `.torn` file; a complete but invalid line is never repaired, wherever it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{AuditRecord, DraftEvent, Principal};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::anchor::AnchorWriter;
use super::checkpoints::CheckpointSigner;
use super::error::DraftError;
use super::journal_head::JournalHead;
use super::{FailPoint, LOCK_WAIT, Reached};

/// Start a new file after this many bytes.
const ROTATE_AT: u64 = 64 << 20;
/// Sign a checkpoint after this many records.
pub(crate) const CHECKPOINT_EVERY: u64 = 256;
/// Sign a checkpoint with the next record after this time.
const CHECKPOINT_AFTER_MS: u64 = 10 * 60 * 1000;
/// Delay between attempts to take a lock.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(2);
/// Upper bound for the length of a line.
const MAX_LINE: u64 = 64 << 20;
/// Length of `,"hash":"`, 64 digits and `"}`.
const HASH_FIELD_BYTES: usize = 9 + 64 + 2;

/// The location of a record in the journal files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalPosition {
    pub(crate) seq: u64,
    pub(crate) hash: Sha256Hex,
    /// Number of the file.
    file: u64,
    /// Offset of the line.
    start: u64,
    /// Offset after the line, including the line break.
    end: u64,
}

/// A journal line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalLine {
    pub head: JournalHead,
    pub record: AuditRecord,
    /// The bytes, without the line break.
    pub text: String,
}

#[derive(Debug)]
pub(crate) struct DraftJournal {
    folder: PathBuf,
    lock: File,
    signer: CheckpointSigner,
    head: JournalHead,
    /// Number of the current file.
    number: u64,
    /// How much of the current file was read.
    offset: u64,
    /// File number, start and end of the last line.
    last_line: (u64, u64, u64),
    signed_at: u64,
    signed_ms: u64,
    rotate_at: u64,
    anchor: Option<AnchorWriter>,
    /// A write failed, so the journal must be reread before the next write.
    must_catch_up: bool,
    /// Whether the last write failed; shared with code that does not hold the journal.
    is_failing: Arc<AtomicBool>,
}

impl DraftJournal {
    pub(crate) fn open(state: &Path, anchor: Option<&Path>) -> Result<Self, DraftError> {
        let folder = state.join("audit");
        let make = || -> io::Result<File> {
            fs_err::create_dir_all(&folder)?;
            let lock = state.join("audit.lock");
            OpenOptions::new().create(true).truncate(false).write(true).open(lock)
        };
        let lock = make().map_err(DraftError::io("cannot open the journal"))?;
        let signer = CheckpointSigner::open(state)?;
        let (signed_at, signed_ms) = signer.last();
        Ok(Self {
            folder,
            lock,
            signer,
            head: JournalHead::start(),
            number: 1,
            offset: 0,
            last_line: (1, 0, 0),
            signed_at,
            signed_ms,
            rotate_at: ROTATE_AT,
            anchor: anchor.map(AnchorWriter::open),
            must_catch_up: false,
            is_failing: Arc::default(),
        })
    }

    pub(crate) fn rotate_at(&mut self, bytes: u64) {
        self.rotate_at = bytes;
    }

    pub(crate) fn head(&self) -> JournalHead {
        self.head
    }

    /// Sequence number of the last checkpoint known to this process.
    pub(crate) fn signed_at(&self) -> u64 {
        self.signed_at
    }

    pub(crate) fn position(&self) -> JournalPosition {
        let JournalHead { seq, hash } = self.head;
        let (file, start, end) = self.last_line;
        JournalPosition { seq, hash, file, start, end }
    }

    /// Continues after this record instead of reading from the start, if the journal contains the
    /// record there and the anchor does not expect an earlier one.
    pub(crate) fn resume_after(&mut self, at: &JournalPosition) -> Result<bool, DraftError> {
        let JournalPosition { seq, hash, file: number, start, end } = *at;
        let head = JournalHead { seq, hash };
        if self.anchor.as_ref().is_some_and(|anchor| anchor.expects_before(seq)) {
            return Ok(false);
        }
        let length = end.saturating_sub(start).min(MAX_LINE);
        let line = read_part(&file(&self.folder, number), start, length)?;
        let Some(line) = line.strip_suffix(b"\n").filter(|line| is_record(line, head)) else {
            return Ok(false);
        };
        let Ok(AuditRecord { event, .. }) = serde_json::from_slice(line) else { return Ok(false) };
        if let Some(anchor) = &mut self.anchor {
            anchor.compare(head);
        }
        self.head = head;
        self.last_line = (number, start, end);
        (self.number, self.offset) = match event {
            DraftEvent::Rotated { next } => (next, 0),
            _ => (number, end),
        };
        Ok(true)
    }

    pub(crate) fn failing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_failing)
    }

    /// Reads what other processes appended and repairs an incomplete last line. The caller must
    /// hold the store lock.
    pub(crate) fn catch_up(
        &mut self,
        mut each: impl FnMut(u64, &AuditRecord),
    ) -> Result<(), DraftError> {
        loop {
            let path = file(&self.folder, self.number);
            let bytes = read_from(&path, self.offset)?;
            let mut at = 0;
            let mut rotated = None;
            let mut torn = false;
            while at < bytes.len() {
                let end = bytes[at..].iter().position(|byte| *byte == b'\n');
                let line = end.map(|end| &bytes[at..at + end]);
                match line.ok_or("incomplete line").and_then(|line| read_line(line, self.head)) {
                    Ok(read) => {
                        let start = self.offset + at as u64;
                        at += read.text.len() + 1;
                        self.last_line = (self.number, start, self.offset + at as u64);
                        self.head = read.head;
                        if let Some(anchor) = &mut self.anchor {
                            anchor.compare(read.head);
                        }
                        if let DraftEvent::Rotated { next } = read.record.event {
                            rotated = Some(next);
                        }
                        each(read.head.seq, &read.record);
                    }
                    Err(why) => {
                        // A crash leaves an incomplete line. A complete but invalid line was
                        // changed afterwards, and moving it aside would hide that.
                        let is_torn = end.is_none_or(|end| {
                            at + end + 1 == bytes.len() && !is_complete(&bytes[at..at + end])
                        });
                        if !is_torn {
                            self.offset += at as u64;
                            return Err(damaged(&path, self.head.seq + 1, why));
                        }
                        torn = true;
                        break;
                    }
                }
            }
            // Advance even if truncating fails; the next call tries again.
            self.offset += at as u64;
            if torn {
                self.cut(&path, self.offset, &bytes[at..])?;
            }
            match rotated {
                Some(next) => {
                    self.number = next;
                    self.offset = 0;
                }
                None => {
                    self.must_catch_up = false;
                    return Ok(());
                }
            }
        }
    }

    /// Appends one record: one write and one flush to disk. After a failure, nothing is appended
    /// until [`Self::catch_up`] has reread the disk.
    pub(crate) fn append(
        &mut self,
        record: &AuditRecord,
        reached: &Reached,
    ) -> Result<(), DraftError> {
        if self.must_catch_up {
            return Err(DraftError::JournalBroken);
        }
        let failing = self.failing();
        let failed = |_: &DraftError| failing.store(true, Ordering::Relaxed);
        self.sign_overdue(record.ts).inspect_err(failed)?;
        self.write(record, reached).inspect_err(failed)?;
        // The record is durable from here on. A failed follow-up is retried with the next record.
        match self.follow_up(record, reached).inspect_err(failed) {
            Ok(()) => failing.store(false, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "cannot rotate or sign the journal"),
        }
        if let Some(anchor) = &mut self.anchor {
            anchor.write(self.head, self.signed_at);
        }
        Ok(())
    }

    /// Tests whether the journal is writable, after a failed write.
    pub(crate) fn probe(&mut self, ts: u64, reached: &Reached) -> Result<(), DraftError> {
        self.sign_overdue(ts)?;
        let path = self.folder.join("probe.new");
        let write = || -> io::Result<()> {
            let mut file = fs_err::File::create(&path)?;
            reached(FailPoint::Journal)?;
            file.write_all(&[0; 4096])?;
            reached(FailPoint::JournalSync)?;
            file.sync_data()
        };
        let written = write();
        let _ = fs_err::remove_file(&path);
        written.map_err(DraftError::io("cannot write the journal"))?;
        self.is_failing.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Signs a checkpoint that was due after an earlier record.
    fn sign_overdue(&mut self, ts: u64) -> Result<(), DraftError> {
        match self.head.seq.saturating_sub(self.signed_at) >= CHECKPOINT_EVERY {
            true => self.sign(ts),
            false => Ok(()),
        }
    }

    /// Rotates the file and signs a checkpoint if they are due.
    fn follow_up(&mut self, record: &AuditRecord, reached: &Reached) -> Result<(), DraftError> {
        if self.offset >= self.rotate_at {
            self.rotate(record.ts, reached)?;
        }
        let due = self.head.seq.saturating_sub(self.signed_at) >= CHECKPOINT_EVERY
            || record.ts.saturating_sub(self.signed_ms) >= CHECKPOINT_AFTER_MS;
        if due {
            self.sign(record.ts)?;
        }
        Ok(())
    }

    fn write(&mut self, record: &AuditRecord, reached: &Reached) -> Result<(), DraftError> {
        let line = line(record, self.head)?;
        let path = file(&self.folder, self.number);
        let what = DraftError::io("cannot write the journal");
        let guard = match FileLock::take(&self.lock, LOCK_WAIT) {
            Ok(guard) => guard,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(DraftError::Busy),
            Err(error) => return Err(what(error)),
        };
        let append = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let write = |file: &mut File| -> io::Result<()> {
                reached(FailPoint::Journal)?;
                file.write_all(line.text.as_bytes())?;
                reached(FailPoint::JournalSync)?;
                file.sync_data()
            };
            // The caller gets an error, so the record must not take effect later.
            write(&mut file).inspect_err(|_| {
                if file.metadata().is_ok_and(|now| now.len() > self.offset) {
                    let _ = file.set_len(self.offset).and_then(|()| file.sync_data());
                }
            })
        };
        let written = append();
        drop(guard);
        if let Err(error) = written {
            self.must_catch_up = true;
            return Err(what(error));
        }
        self.head = line.head;
        let start = self.offset;
        self.offset += line.text.len() as u64;
        self.last_line = (self.number, start, self.offset);
        Ok(())
    }

    fn rotate(&mut self, ts: u64, reached: &Reached) -> Result<(), DraftError> {
        let next = self.number + 1;
        let event = DraftEvent::Rotated { next };
        let record = AuditRecord { ts, actor: Principal::gate(), client: None, event };
        self.write(&record, reached)?;
        let path = file(&self.folder, self.number);
        self.number = next;
        self.offset = 0;
        let close = || -> io::Result<()> {
            let mut permissions = fs_err::metadata(&path)?.permissions();
            permissions.set_readonly(true);
            fs_err::set_permissions(&path, permissions)
        };
        close().map_err(DraftError::io("cannot rotate the journal"))?;
        self.sign(ts)
    }

    fn sign(&mut self, ts: u64) -> Result<(), DraftError> {
        self.signer.checkpoint(self.head)?;
        self.signed_at = self.head.seq;
        self.signed_ms = ts;
        Ok(())
    }

    /// Saves the bytes of an incomplete last line and truncates the file to its last complete
    /// record.
    fn cut(&self, path: &Path, keep: u64, torn: &[u8]) -> Result<(), DraftError> {
        let cut = || -> io::Result<()> {
            let torn_file = path.with_extension("torn");
            let mut torn_file = OpenOptions::new().create(true).append(true).open(torn_file)?;
            torn_file.write_all(torn)?;
            torn_file.write_all(b"\n")?;
            torn_file.sync_all()?;
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(keep)?;
            file.sync_all()
        };
        cut().map_err(DraftError::io("cannot truncate the incomplete end of the journal"))
    }
}

pub(crate) fn file(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}.ndjson"))
}

pub(crate) fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>, DraftError> {
    read_part(path, offset, u64::MAX)
}

fn read_part(path: &Path, offset: u64, length: u64) -> Result<Vec<u8>, DraftError> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = match fs_err::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(DraftError::io("cannot read the journal"))
}

pub(crate) fn damaged(path: &Path, seq: u64, why: &'static str) -> DraftError {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    DraftError::JournalDamaged { seq, file: file.unwrap_or_default(), why }
}

/// Formats the line for a record that follows `head`.
fn line(record: &AuditRecord, head: JournalHead) -> Result<JournalLine, DraftError> {
    let body = serde_json::to_string(record)
        .map_err(|error| DraftError::io("cannot serialize the record")(error.into()))?;
    let fields = body.strip_prefix('{').unwrap_or(&body);
    let fields = fields.strip_suffix('}').unwrap_or(fields);
    let seq = head.seq + 1;
    let signed = format!("{{\"seq\":{seq},\"prev\":\"{}\",{fields}", head.hash);
    let hash = Sha256Hex::of(signed.as_bytes());
    let text = format!("{signed},\"hash\":\"{hash}\"}}\n");
    Ok(JournalLine { head: JournalHead { seq, hash }, record: record.clone(), text })
}

pub(crate) fn read_line(line: &[u8], after: JournalHead) -> Result<JournalLine, &'static str> {
    let (text, signed, hash) = split_line(line)?;
    if Sha256Hex::of(signed.as_bytes()) != hash {
        return Err("hash does not match");
    }
    let head = JournalHead { seq: after.seq + 1, hash };
    if !signed.starts_with(&format!("{{\"seq\":{},\"prev\":\"{}\",", head.seq, after.hash)) {
        return Err("does not follow the previous record");
    }
    let unknown = "unknown record format; it may have been written by a newer version of moothall";
    let record = serde_json::from_str(text).map_err(|_| unknown)?;
    Ok(JournalLine { head, record, text: text.to_owned() })
}

/// Splits a line into its text, the hashed part, and the hash at its end.
fn split_line(line: &[u8]) -> Result<(&str, &str, Sha256Hex), &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8")?;
    let cut = text.len().checked_sub(HASH_FIELD_BYTES).filter(|at| text.is_char_boundary(*at));
    let (signed, tail) = text.split_at(cut.ok_or("too short")?);
    let hash = tail.strip_prefix(",\"hash\":\"").and_then(|rest| rest.strip_suffix("\"}"));
    let hash = hash.and_then(Sha256Hex::parse).ok_or("no hash at the end")?;
    Ok((text, signed, hash))
}

/// Whether a line is the record at `head`.
fn is_record(line: &[u8], head: JournalHead) -> bool {
    split_line(line).is_ok_and(|(_, signed, hash)| {
        hash == head.hash
            && Sha256Hex::of(signed.as_bytes()) == hash
            && signed.starts_with(&format!("{{\"seq\":{},", head.seq))
    })
}

/// Whether a line was written completely, valid or not.
fn is_complete(line: &[u8]) -> bool {
    split_line(line).is_ok()
}

/// Whether a line was written completely but its hash does not match.
pub(crate) fn is_altered(line: &[u8]) -> bool {
    split_line(line).is_ok_and(|(_, signed, hash)| Sha256Hex::of(signed.as_bytes()) != hash)
}

/// A file lock that is released when dropped, or by the kernel when the process dies.
#[derive(Debug)]
pub(crate) struct FileLock<'a>(&'a File);

impl<'a> FileLock<'a> {
    /// Waits up to `wait`, then returns [`io::ErrorKind::TimedOut`]. Polls, because `flock` has no
    /// timeout.
    pub(crate) fn take(file: &'a File, wait: Duration) -> io::Result<Self> {
        let until = Instant::now() + wait;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                    std::thread::sleep(LOCK_RETRY_DELAY);
                }
                Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
