//! The journal: one line of JSON for everything that happened, each with the hash of the one before.
//!
//! A line is `{"seq":n,"prev":"…",…,"hash":"…"}`, and its hash is that of the bytes before `,"hash"`,
//! so that checking a line needs no rules about JSON. A last line that was not written to its end is
//! moved to a `.torn` file; a complete line that is wrong is never mended, wherever it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moothall_core::Sha256Hex;
use moothall_core::drafts::{Event, Principal, Record};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::anchor::AnchorWriter;
use super::checkpoints::Signer;
use super::error::DraftError;
use super::head::Head;
use super::{LOCK_WAIT, Point, Reached};

/// Bytes after which a file is closed and the next one begun.
const ROTATE_AT: u64 = 64 << 20;
/// Records after which a checkpoint is signed.
pub(super) const CHECKPOINT_EVERY: u64 = 256;
/// Milliseconds after which one is signed with the next record.
const CHECKPOINT_AFTER_MS: u64 = 10 * 60 * 1000;
/// How long to wait before a lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// More bytes than any line has.
const MAX_LINE: u64 = 64 << 20;
/// `,"hash":"` and 64 digits and `"}`.
const TAIL: usize = 9 + 64 + 2;

/// Where the journal stands in its files, right after one of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalPosition {
    /// The number of the record.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) hash: Sha256Hex,
    /// The number of the file that holds it.
    file: u64,
    /// Where its line begins there.
    start: u64,
    /// Where its line ends, with the line break.
    end: u64,
}

/// A line as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its place in the chain.
    pub head: Head,
    /// What it says.
    pub record: Record,
    /// The bytes, without the line break.
    pub text: String,
}

#[derive(Debug)]
pub(super) struct Journal {
    folder: PathBuf,
    lock: File,
    signer: Signer,
    head: Head,
    /// The number of the file that is written.
    number: u64,
    /// How much of it was read.
    offset: u64,
    /// The file, the beginning and the end of the last line.
    last_line: (u64, u64, u64),
    signed_at: u64,
    signed_ms: u64,
    rotate_at: u64,
    anchor: Option<AnchorWriter>,
    /// A write failed: what is on the disk must be read before the next one.
    must_catch_up: bool,
    /// Whether the last write failed, for those who do not hold the journal.
    is_failing: Arc<AtomicBool>,
}

impl Journal {
    pub(super) fn open(state: &Path, anchor: Option<&Path>) -> Result<Self, DraftError> {
        let folder = state.join("audit");
        let make = || -> io::Result<File> {
            fs_err::create_dir_all(&folder)?;
            let lock = state.join("audit.lock");
            OpenOptions::new().create(true).truncate(false).write(true).open(lock)
        };
        let lock = make().map_err(DraftError::io("the journal cannot be opened"))?;
        let signer = Signer::open(state)?;
        let (signed_at, signed_ms) = signer.last();
        Ok(Self {
            folder,
            lock,
            signer,
            head: Head::start(),
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

    pub(super) fn rotate_at(&mut self, bytes: u64) {
        self.rotate_at = bytes;
    }

    pub(super) fn head(&self) -> Head {
        self.head
    }

    /// The record of the last checkpoint that this process knows.
    pub(super) fn signed_at(&self) -> u64 {
        self.signed_at
    }

    pub(super) fn position(&self) -> JournalPosition {
        let Head { seq, hash } = self.head;
        let (file, start, end) = self.last_line;
        JournalPosition { seq, hash, file, start, end }
    }

    /// Goes on after a record instead of at the beginning, if the journal holds that record there
    /// and the anchor does not ask about an earlier one.
    pub(super) fn resume_after(&mut self, at: &JournalPosition) -> Result<bool, DraftError> {
        let JournalPosition { seq, hash, file: number, start, end } = *at;
        let head = Head { seq, hash };
        if self.anchor.as_ref().is_some_and(|anchor| anchor.expects_before(seq)) {
            return Ok(false);
        }
        let length = end.saturating_sub(start).min(MAX_LINE);
        let line = read_part(&file(&self.folder, number), start, length)?;
        let Some(line) = line.strip_suffix(b"\n").filter(|line| is_record(line, head)) else {
            return Ok(false);
        };
        let Ok(Record { event, .. }) = serde_json::from_slice(line) else { return Ok(false) };
        if let Some(anchor) = &mut self.anchor {
            anchor.compare(head);
        }
        self.head = head;
        self.last_line = (number, start, end);
        (self.number, self.offset) = match event {
            Event::Rotated { next } => (next, 0),
            _ => (number, end),
        };
        Ok(true)
    }

    /// Whether the last write failed.
    pub(super) fn failing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_failing)
    }

    /// Reads what others wrote since, and mends a tail that was not written to its end. Only for
    /// whoever holds the lock of the store.
    pub(super) fn catch_up(
        &mut self,
        mut each: impl FnMut(u64, &Record),
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
                match line.ok_or("it has no end").and_then(|line| read_line(line, self.head)) {
                    Ok(read) => {
                        let start = self.offset + at as u64;
                        at += read.text.len() + 1;
                        self.last_line = (self.number, start, self.offset + at as u64);
                        self.head = read.head;
                        if let Some(anchor) = &mut self.anchor {
                            anchor.compare(read.head);
                        }
                        if let Event::Rotated { next } = read.record.event {
                            rotated = Some(next);
                        }
                        each(read.head.seq, &read.record);
                    }
                    Err(why) => {
                        // A crash leaves a line without its end. A whole line that is wrong was
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
            // What was read stays read if the rest cannot be cut, and the next call tries again.
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

    /// Appends one record: one write, one flush to the disk. After a failure nothing is appended
    /// until [`Self::catch_up`] has read what is on the disk.
    pub(super) fn append(&mut self, record: &Record, reached: &Reached) -> Result<(), DraftError> {
        if self.must_catch_up {
            return Err(DraftError::JournalBroken);
        }
        let failing = self.failing();
        let failed = |_: &DraftError| failing.store(true, Ordering::Relaxed);
        self.sign_overdue(record.ts).inspect_err(failed)?;
        self.write(record, reached).inspect_err(failed)?;
        // The record counts from here on. What is due after it is tried again with the next one.
        match self.follow_up(record, reached).inspect_err(failed) {
            Ok(()) => failing.store(false, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the journal cannot be rotated or signed"),
        }
        if let Some(anchor) = &mut self.anchor {
            anchor.write(self.head, self.signed_at);
        }
        Ok(())
    }

    /// Tries whether the journal can be written, after a write that failed.
    pub(super) fn probe(&mut self, ts: u64, reached: &Reached) -> Result<(), DraftError> {
        self.sign_overdue(ts)?;
        let path = self.folder.join("probe.new");
        let write = || -> io::Result<()> {
            let mut file = fs_err::File::create(&path)?;
            reached(Point::Journal)?;
            file.write_all(&[0; 4096])?;
            reached(Point::JournalSync)?;
            file.sync_data()
        };
        let written = write();
        let _ = fs_err::remove_file(&path);
        written.map_err(DraftError::io("the journal cannot be written"))?;
        self.is_failing.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Signs a checkpoint that should have been signed after an earlier record.
    fn sign_overdue(&mut self, ts: u64) -> Result<(), DraftError> {
        match self.head.seq.saturating_sub(self.signed_at) >= CHECKPOINT_EVERY {
            true => self.sign(ts),
            false => Ok(()),
        }
    }

    /// What is due after a record: a new file, a signature.
    fn follow_up(&mut self, record: &Record, reached: &Reached) -> Result<(), DraftError> {
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

    fn write(&mut self, record: &Record, reached: &Reached) -> Result<(), DraftError> {
        let line = line(record, self.head)?;
        let path = file(&self.folder, self.number);
        let what = DraftError::io("the journal cannot be written");
        let held = match Locked::take(&self.lock, LOCK_WAIT) {
            Ok(held) => held,
            // Nothing was written.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(DraftError::Busy),
            Err(error) => return Err(what(error)),
        };
        let append = || -> io::Result<()> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            let write = |file: &mut File| -> io::Result<()> {
                reached(Point::Journal)?;
                file.write_all(line.text.as_bytes())?;
                reached(Point::JournalSync)?;
                file.sync_data()
            };
            // The caller is told that the record was not written, so it must not count later.
            write(&mut file).inspect_err(|_| {
                if file.metadata().is_ok_and(|now| now.len() > self.offset) {
                    let _ = file.set_len(self.offset).and_then(|()| file.sync_data());
                }
            })
        };
        let written = append();
        drop(held);
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
        let event = Event::Rotated { next };
        let record = Record { ts, actor: Principal::gate(), client: None, event };
        self.write(&record, reached)?;
        let path = file(&self.folder, self.number);
        self.number = next;
        self.offset = 0;
        let close = || -> io::Result<()> {
            let mut permissions = fs_err::metadata(&path)?.permissions();
            permissions.set_readonly(true);
            fs_err::set_permissions(&path, permissions)
        };
        close().map_err(DraftError::io("the journal cannot be rotated"))?;
        self.sign(ts)
    }

    fn sign(&mut self, ts: u64) -> Result<(), DraftError> {
        self.signer.checkpoint(self.head)?;
        self.signed_at = self.head.seq;
        self.signed_ms = ts;
        Ok(())
    }

    /// Keeps the bytes of a torn tail aside, and cuts the file back to its last whole record.
    fn cut(&self, path: &Path, keep: u64, torn: &[u8]) -> Result<(), DraftError> {
        let cut = || -> io::Result<()> {
            let aside = path.with_extension("torn");
            let mut aside = OpenOptions::new().create(true).append(true).open(aside)?;
            aside.write_all(torn)?;
            aside.write_all(b"\n")?;
            aside.sync_all()?;
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(keep)?;
            file.sync_all()
        };
        cut().map_err(DraftError::io("the torn end of the journal cannot be cut"))
    }
}

pub(super) fn file(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}.ndjson"))
}

pub(super) fn read_from(path: &Path, offset: u64) -> Result<Vec<u8>, DraftError> {
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
    read().map_err(DraftError::io("the journal cannot be read"))
}

pub(super) fn damaged(path: &Path, seq: u64, why: &'static str) -> DraftError {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    DraftError::JournalDamaged { seq, file: file.unwrap_or_default(), why }
}

/// The line of a record after `head`.
fn line(record: &Record, head: Head) -> Result<Line, DraftError> {
    let body = serde_json::to_string(record)
        .map_err(|error| DraftError::io("the record cannot be written")(error.into()))?;
    let fields = body.strip_prefix('{').unwrap_or(&body);
    let fields = fields.strip_suffix('}').unwrap_or(fields);
    let seq = head.seq + 1;
    let signed = format!("{{\"seq\":{seq},\"prev\":\"{}\",{fields}", head.hash);
    let hash = Sha256Hex::of(signed.as_bytes());
    let text = format!("{signed},\"hash\":\"{hash}\"}}\n");
    Ok(Line { head: Head { seq, hash }, record: record.clone(), text })
}

pub(super) fn read_line(line: &[u8], after: Head) -> Result<Line, &'static str> {
    let (text, signed, hash) = split_line(line)?;
    if Sha256Hex::of(signed.as_bytes()) != hash {
        return Err("its hash is another one");
    }
    let head = Head { seq: after.seq + 1, hash };
    if !signed.starts_with(&format!("{{\"seq\":{},\"prev\":\"{}\",", head.seq, after.hash)) {
        return Err("it does not follow the one before");
    }
    let record = serde_json::from_str(text).map_err(|_| "nobody knows what it says")?;
    Ok(Line { head, record, text: text.to_owned() })
}

/// A line as text, the part of it that is hashed, and the hash that it ends in.
fn split_line(line: &[u8]) -> Result<(&str, &str, Sha256Hex), &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not text")?;
    let cut = text.len().checked_sub(TAIL).filter(|at| text.is_char_boundary(*at));
    let (signed, tail) = text.split_at(cut.ok_or("it is too short")?);
    let hash = tail.strip_prefix(",\"hash\":\"").and_then(|rest| rest.strip_suffix("\"}"));
    let hash = hash.and_then(Sha256Hex::parse).ok_or("it does not end in its hash")?;
    Ok((text, signed, hash))
}

/// Whether a line is this record.
fn is_record(line: &[u8], head: Head) -> bool {
    split_line(line).is_ok_and(|(_, signed, hash)| {
        hash == head.hash
            && Sha256Hex::of(signed.as_bytes()) == hash
            && signed.starts_with(&format!("{{\"seq\":{},", head.seq))
    })
}

/// Whether a line was written to its end, right or wrong.
fn is_complete(line: &[u8]) -> bool {
    split_line(line).is_ok()
}

/// Whether a line was written to its end and does not have its own hash.
pub(super) fn is_altered(line: &[u8]) -> bool {
    split_line(line).is_ok_and(|(_, signed, hash)| Sha256Hex::of(signed.as_bytes()) != hash)
}

/// A lock that is held until it is dropped, and that the kernel frees when its holder dies.
#[derive(Debug)]
pub(super) struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    /// Waits for at most so long; then the error is [`io::ErrorKind::TimedOut`]. There is no call that
    /// waits for a lock with a limit, so it is tried again and again.
    pub(super) fn take(file: &'a File, wait: Duration) -> io::Result<Self> {
        let until = Instant::now() + wait;
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}
