//! Review links: signed permissions to decide once about one version of one draft.
//!
//! A token is `PAYLOAD.SIGNATURE`, both in base64url. The payload names the notice, the draft, the
//! hash of the version and the expiry; the signature is an HMAC-SHA256 with a key that only the user
//! of this machine can read. The token is in the fragment of the link, which browsers do not send, so
//! it is in no access log and no `Referer`; the review page sends it in the body of a POST request.
//!
//! A used token leaves a file that is created exclusively, so that only one of several concurrent
//! requests succeeds, also in different processes and after a restart.

use std::fmt;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moothall_core::Sha256Hex;
use moothall_core::drafts::DraftId;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Path of the review page.
pub(crate) const REVIEW_PAGE: &str = "/review";

/// Longer tokens are refused without decoding.
const MAX_TOKEN_BYTES: usize = 1_000;

/// Signed together with the payload, so that a signature for another purpose is never a token.
const CONTEXT: &[u8] = b"moothall review link v1\n";

const KEY_BYTES: usize = 32;

/// What a token allows: a decision about this version of this draft, until it expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewLink {
    /// Number of the notice that contained the link.
    pub notice: String,
    /// Name of the receiver of the notice.
    pub target: String,
    /// The draft, as text.
    pub draft: String,
    /// Hash of everything the submission proposes, as text.
    pub seal: String,
    /// Time in milliseconds since 1970.
    pub expires_at_ms: u64,
    /// Random, so that no two tokens are equal.
    nonce: String,
}

impl ReviewLink {
    /// The draft and the hash of its version.
    pub(crate) fn subject(&self) -> Option<(DraftId, Sha256Hex)> {
        Some((DraftId::parse(&self.draft)?, Sha256Hex::parse(&self.seal)?))
    }
}

/// Why a token is refused.
#[derive(Debug, thiserror::Error)]
pub enum ReviewLinkError {
    /// Not a token of this machine.
    #[error("this review link is invalid")]
    Invalid,
    /// The token is too old.
    #[error("this review link has expired")]
    Expired,
    /// The token was used.
    #[error("this review link has been used")]
    Used,
    /// The key or the list of used tokens is not accessible.
    #[error("cannot access the review links")]
    Io(#[from] io::Error),
}

/// A token, which never appears in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct ReviewToken(String);

impl ReviewToken {
    /// The link to the review page of the server at this origin.
    pub fn link(&self, origin: &str) -> String {
        format!("{}{REVIEW_PAGE}#{}", origin.trim_end_matches('/'), self.0)
    }

    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ReviewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReviewToken(…)")
    }
}

/// The key that signs review links, and the tokens that were used.
#[derive(Debug, Clone)]
pub struct ReviewLinkStore {
    folder: PathBuf,
}

impl ReviewLinkStore {
    /// Uses this directory, which need not exist yet.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Issues a token.
    ///
    /// # Errors
    ///
    /// Fails if the key can be neither read nor created.
    pub fn issue(
        &self,
        notice: &str,
        target: &str,
        draft: DraftId,
        seal: Sha256Hex,
        expires_at_ms: u64,
    ) -> io::Result<ReviewToken> {
        let nonce = URL_SAFE_NO_PAD.encode(random::<16>()?);
        let link = ReviewLink {
            notice: notice.to_owned(),
            target: target.to_owned(),
            draft: draft.to_string(),
            seal: seal.to_string(),
            expires_at_ms,
            nonce,
        };
        let payload = serde_json::to_vec(&link)?;
        let tag = hmac::sign(&self.key()?, &signed(&payload));
        let (payload, tag) = (URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(tag));
        Ok(ReviewToken(format!("{payload}.{tag}")))
    }

    /// Checks a token and does not use it up.
    ///
    /// # Errors
    ///
    /// Fails if the token is not valid, or if the store is not accessible.
    pub fn verify(&self, token: &str, now_ms: u64) -> Result<ReviewLink, ReviewLinkError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(ReviewLinkError::Invalid);
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let (payload, tag) = token
            .split_once('.')
            .and_then(|(payload, tag)| Some((decode(payload)?, decode(tag)?)))
            .ok_or(ReviewLinkError::Invalid)?;
        // Compares in constant time.
        hmac::verify(&self.key()?, &signed(&payload), &tag)
            .map_err(|_| ReviewLinkError::Invalid)?;
        let link: ReviewLink =
            serde_json::from_slice(&payload).map_err(|_| ReviewLinkError::Invalid)?;
        if link.expires_at_ms <= now_ms {
            return Err(ReviewLinkError::Expired);
        }
        match self.used_file(&link).try_exists()? {
            true => Err(ReviewLinkError::Used),
            false => Ok(link),
        }
    }

    /// Uses a verified token up. Only one caller succeeds.
    ///
    /// # Errors
    ///
    /// Fails if the token was used, or if its use cannot be recorded.
    pub(crate) fn claim(
        &self,
        link: &ReviewLink,
        now_ms: u64,
    ) -> Result<ReviewLinkClaim, ReviewLinkError> {
        let path = self.used_file(link);
        let folder = self.folder.join("used");
        create_private_folder(&folder)?;
        self.forget_expired(&folder, now_ms);
        let options = private_file();
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(ReviewLinkError::Used);
            }
            opened => opened?,
        };
        file.sync_all()?;
        fs_err::File::open(&folder)?.sync_all()?;
        Ok(ReviewLinkClaim { path })
    }

    /// Expired tokens are refused anyway, so their files are not needed.
    fn forget_expired(&self, folder: &Path, now_ms: u64) {
        let Ok(entries) = fs_err::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let expiry = name.to_str().and_then(|name| name.split('-').next()?.parse::<u64>().ok());
            if expiry.is_some_and(|expires_at_ms| expires_at_ms <= now_ms) {
                // Kept for longer if it cannot be removed.
                let _ = fs_err::remove_file(entry.path());
            }
        }
    }

    fn used_file(&self, link: &ReviewLink) -> PathBuf {
        let nonce = Sha256Hex::of(link.nonce.as_bytes());
        self.folder.join("used").join(format!("{}-{nonce}", link.expires_at_ms))
    }

    /// Reads the key, or creates one.
    fn key(&self) -> io::Result<hmac::Key> {
        let path = self.folder.join("key");
        if !path.try_exists()? {
            self.create_key(&path)?;
        }
        let mode = fs_err::metadata(&path)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(io::Error::other("other users can read the key of review links"));
        }
        let bytes = fs_err::read(&path)?;
        match bytes.len() == KEY_BYTES {
            true => Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes)),
            false => Err(io::Error::other("the key of review links is damaged")),
        }
    }

    /// The complete file gets its name in one step: another process may create a key at the same time,
    /// and the first one wins.
    fn create_key(&self, path: &Path) -> io::Result<()> {
        create_private_folder(&self.folder)?;
        let name = URL_SAFE_NO_PAD.encode(random::<16>()?);
        let fresh = self.folder.join(format!("new-{name}"));
        let mut file = private_file().open(&fresh)?;
        file.write_all(&random::<KEY_BYTES>()?)?;
        file.sync_all()?;
        let linked = fs_err::hard_link(&fresh, path);
        fs_err::remove_file(&fresh)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

/// A token that was used up for a decision in progress.
#[derive(Debug)]
pub(crate) struct ReviewLinkClaim {
    path: PathBuf,
}

impl ReviewLinkClaim {
    /// Allows the token again, because nothing was decided and trying again can succeed.
    pub(crate) fn release(self) {
        if let Err(error) = fs_err::remove_file(&self.path) {
            tracing::warn!(target: "moothall::server", %error, "a review link stays used");
        }
    }
}

fn signed(payload: &[u8]) -> Vec<u8> {
    [CONTEXT, payload].concat()
}

fn private_file() -> fs_err::OpenOptions {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create_new(true);
    options.options_mut().mode(0o600);
    options
}

fn create_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "review_links_tests.rs"]
mod tests;
