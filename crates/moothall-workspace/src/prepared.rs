//! Drafts as the gate and its checks read them.

use std::borrow::Cow;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::drafts::RelPath;
use moothall_core::gate::unified;

/// The contents of one draft, owned so that a thread can have them.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    pub(super) path: RelPath,
    pub(super) rename_to: Option<RelPath>,
    pub(super) base: Option<(Vec<u8>, bool)>,
    pub(super) after: Option<(Vec<u8>, bool)>,
    pub(super) origin: Option<(Vec<u8>, bool)>,
    pub(super) twins: Vec<String>,
    pub(super) ignored: bool,
    pub(super) below_head: bool,
}

/// Drafts as they were read under the lock, to be judged without it: others need not wait for that.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) seal: Sha256Hex,
    pub(super) files: Arc<Vec<Owned>>,
}

/// The difference of one file.
pub(super) fn difference(file: &Owned) -> String {
    let name = file.rename_to.as_ref().unwrap_or(&file.path);
    unified(name.as_str(), &text(&file.base), &text(&file.after))
}

/// One side of a change as text.
pub(super) fn text(side: &Option<(Vec<u8>, bool)>) -> Cow<'_, str> {
    side.as_ref().map_or(Cow::Borrowed(""), |(bytes, _)| String::from_utf8_lossy(bytes))
}
