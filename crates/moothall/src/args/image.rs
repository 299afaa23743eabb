//! The flags of `moothall image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const BUILD_HELP: &str = "\
Images are made of Debian packages on this machine, and need no privilege: packages are fetched,
checked and unpacked by mmdebstrap, and no script of theirs is run. They come from the mirror that
this machine's own apt uses, or from where mmdebstrap looks by itself where there is none.
The same packages, recipe and tools give the same digest.

Needed programs: mmdebstrap, mksquashfs, apt-get
  on Debian and Ubuntu: apt install mmdebstrap squashfs-tools

Examples:
  moothall image build                # all of them
  moothall image build python         # one
  moothall image build --force        # again, with the newest packages";

const VERIFY_HELP: &str = "\
Exit code 1 says that an image is not what it was when it was built.

Examples:
  moothall image verify
  moothall image verify python --rebuild";

const EXPORT_HELP: &str = "\
The file is a tar archive with the digests of the images in it. The same images make the same bytes.

Examples:
  moothall image export --out images.tar
  moothall image export debate --out debate.tar";

const IMPORT_HELP: &str = "\
Nothing in the file is trusted: an image gets its name only after every byte of it was compared with
its digest. Whether the digest is the one that you expect is for you to compare.

Examples:
  moothall image import images.tar
  zstd --decompress --stdout images.tar.zst | moothall image import -";

#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Build images from Debian packages, here and without privileges
    Build(ImageBuildArgs),
    /// List the images that are built
    List(ImageListArgs),
    /// Compare every byte of the images with their digests
    Verify(ImageVerifyArgs),
    /// Pack images into one file, for a machine that cannot build them
    Export(ImageExportArgs),
    /// Unpack images that another machine packed, and compare every byte with their digests
    Import(ImageImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = BUILD_HELP)]
pub(crate) struct ImageBuildArgs {
    /// What to build: debate, python, documents or data [default: all of them]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Build again what is there, with the newest packages
    #[arg(long)]
    pub(crate) force: bool,
    /// Where packages come from instead: an address, or a line as in apt's sources.list; can be
    /// given more than once
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
    /// The image [default: all that are built]
    pub(crate) name: Option<String>,
    /// Build it once more, keep nothing of it, and compare the digests too
    #[arg(long)]
    pub(crate) rebuild: bool,
    /// Where packages come from, with --rebuild
    #[arg(long, value_name = "MIRROR", requires = "rebuild")]
    pub(crate) mirror: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ImageExportArgs {
    /// The images [default: all that are built]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The file to make; one that exists is not replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImageImportArgs {
    /// The bundle; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
