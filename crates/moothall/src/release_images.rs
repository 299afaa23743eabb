//! Digests of the sandbox images that were released together with this program. A build without
//! `MOOTHALL_IMAGE_DIGESTS` has none.

use moothall_core::Sha256Hex;

include!(concat!(env!("OUT_DIR"), "/image_digests.rs"));

pub(crate) fn digest_of(image: &str) -> Option<Sha256Hex> {
    let (_, digest) = DIGESTS.iter().find(|(name, _)| *name == image)?;
    Sha256Hex::parse(digest)
}
