//! Arguments of `image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use moothall_core::Sha256Hex;

const BUILD_HELP: &str = "\
Images are built from Debian packages on this machine, without privileges: mmdebstrap downloads,
verifies and unpacks packages, and no package scripts are run. Packages come from the mirror that
apt uses on this machine, or from mmdebstrap's default mirror if there is none.
The same packages, recipe and tools produce the same digest.

Required programs: mmdebstrap, mksquashfs, apt-get
  on Debian and Ubuntu: apt install mmdebstrap squashfs-tools

Examples:
  moothall image build                # all images
  moothall image build python         # one image
  moothall image build --force        # rebuild with the newest packages";

const VERIFY_HELP: &str = "\
Exit code 1 means that an image has changed since it was built.

Examples:
  moothall image verify
  moothall image verify python --rebuild";

const EXPORT_HELP: &str = "\
The file is a tar archive of images and their digests. The same images produce the same bytes.

Examples:
  moothall image export --output images.tar
  moothall image export debate --output debate.tar";

const IMPORT_HELP: &str = "\
The file is untrusted: an image is installed only after every byte has been compared with its
digest. The digest itself must be expected: a release contains the digests of its images, and for
other images you pass the digest that `moothall image export` printed.

Examples:
  moothall image import moothall-images.tar         # images of this release
  moothall image import debate.tar --digest SHA256  # an image from another machine
  zstd --decompress --stdout images.tar.zst | moothall image import -";

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build images from Debian packages on this machine, without privileges
    Build(ImageBuildArgs),
    /// List installed images
    List(ImageListArgs),
    /// Compare every byte of the images with their digests
    Verify(ImageVerifyArgs),
    /// Export images to one file, for machines that cannot build them
    Export(ImageExportArgs),
    /// Import images from another machine, and compare every byte with their digests
    Import(ImageImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = BUILD_HELP)]
pub(crate) struct ImageBuildArgs {
    /// Images to build: debate, python, documents or data [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Rebuild existing images with the newest packages
    #[arg(long)]
    pub(crate) force: bool,
    /// Download packages from this mirror: a URL, or a line as in apt's sources.list (repeatable)
    #[arg(long, value_name = "MIRROR")]
    pub(crate) mirror: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImageListArgs {
    /// Print JSON, with the packages and Python modules of every image
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub(crate) struct ImageVerifyArgs {
    /// Image to verify [default: all installed images]
    pub(crate) name: Option<String>,
    /// Also rebuild the image, discard the result, and compare the digests
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Download packages from this mirror, with --rebuild
    #[arg(long, value_name = "MIRROR", requires = "rebuild")]
    pub(crate) mirror: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ImageExportArgs {
    /// Images to export [default: all installed images]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Write to this file; an existing file is not overwritten
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImageImportArgs {
    /// File to import, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Accept an image with this digest (repeatable)
    #[arg(long, value_name = "SHA256", value_parser = parse_digest)]
    pub(crate) digest: Vec<Sha256Hex>,
    /// Accept all images in the file, for a file that you trust as much as this program
    #[arg(long, conflicts_with = "digest")]
    pub(crate) any_digest: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_digest(text: &str) -> Result<Sha256Hex, &'static str> {
    Sha256Hex::parse(text).ok_or("not 64 lowercase hexadecimal digits")
}
