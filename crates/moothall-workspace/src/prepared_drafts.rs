//! Drafts as input for the gate and its checks.

use std::borrow::Cow;
use std::sync::Arc;

use moothall_core::Sha256Hex;
use moothall_core::drafts::RelPath;
use moothall_core::gate::unified;

/// The contents of one draft, owned so they can be sent to a thread.
#[derive(Debug, Clone)]
pub(crate) struct PreparedFile {
    pub(crate) path: RelPath,
    pub(crate) rename_to: Option<RelPath>,
    pub(crate) base: Option<(Vec<u8>, bool)>,
    pub(crate) after: Option<(Vec<u8>, bool)>,
    pub(crate) origin: Option<(Vec<u8>, bool)>,
    pub(crate) twins: Vec<String>,
    pub(crate) ignored: bool,
    pub(crate) below_head: bool,
}

/// Drafts read under the lock and judged without it, so that other operations do not wait.
#[derive(Debug)]
pub(crate) struct PreparedDrafts {
    pub(crate) seal: Sha256Hex,
    pub(crate) files: Arc<Vec<PreparedFile>>,
}

pub(crate) fn difference(file: &PreparedFile) -> String {
    let name = file.rename_to.as_ref().unwrap_or(&file.path);
    unified(name.as_str(), &text(&file.base), &text(&file.after))
}

pub(crate) fn text(side: &Option<(Vec<u8>, bool)>) -> Cow<'_, str> {
    side.as_ref().map_or(Cow::Borrowed(""), |(bytes, _)| String::from_utf8_lossy(bytes))
}
