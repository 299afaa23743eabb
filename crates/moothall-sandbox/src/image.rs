//! Images: the kernel and root file systems that sandboxes run from.
//!
//! An image is a folder named by the hash of its manifest; the manifest holds the hash of every
//! other file in it. A tag file maps a name to an image:
//!
//! ```text
//! <images>/tags/python             the digest and a line break
//! <images>/<digest>/manifest.json  format, recipe, packages, tools, files
//! <images>/<digest>/vmlinuz        the kernel
//! <images>/<digest>/modules.cpio   the first part of the initramfs; the agent is the second
//! <images>/<digest>/rootfs.sqfs    the root file system for a microVM
//! <images>/<digest>/root           the same for a container
//! <images>/<digest>/tree.json      what is in root/, with hashes
//! <images>/building/               work in progress, and a lock for each image being provided
//! ```
//!
//! [`ImageBuilder`] builds images; they never change afterwards. Starting a sandbox downloads
//! nothing.

mod apt_sources;
mod build;
mod build_tools;
mod bundle;
mod initramfs;
mod manifest;
mod mirror_check;
mod provide;
mod recipe;
mod tree;
mod verify;
mod work_folder;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use moothall_core::Sha256Hex;

pub use self::build::{
    BuildOptions, BuildOutcome, BuildProgress, BuildStep, ExistingImagePolicy, ImageBuilder,
    RebuildComparison,
};
pub use self::bundle::BundleEntry;
pub use self::initramfs::init_archive;
pub use self::manifest::{DebianPackage, FileEntry, ImageManifest};
pub use self::provide::{ImageOrigin, PendingBuild};
pub use self::recipe::{ImageRecipe, KernelRecipe, RootRecipe};
pub use self::verify::{ImageProblem, ImageProblemKind};
use crate::SandboxError;

const TAGS: &str = "tags";
const BUILDING: &str = "building";
const MANIFEST: &str = "manifest.json";
const VMLINUZ: &str = "vmlinuz";
const MODULES: &str = "modules.cpio";
const ROOTFS: &str = "rootfs.sqfs";
const ROOT: &str = "root";
const TREE: &str = "tree.json";

/// Size limit for manifests and tree lists. The largest current one is 3 MB.
const MAX_TREE_BYTES: u64 = 64 * 1024 * 1024;

/// The images in one folder.
#[derive(Debug, Clone)]
pub struct ImageStore {
    folder: PathBuf,
}

/// An installed image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxImage {
    pub name: String,
    /// Hash of the manifest, which covers all other files.
    pub sha256: Sha256Hex,
    pub folder: PathBuf,
    pub vmlinuz: PathBuf,
    /// First part of the initramfs. [`init_archive`] makes the second.
    pub modules: PathBuf,
    /// Root file system as squashfs.
    pub rootfs: Option<PathBuf>,
    /// Root file system as a folder.
    pub root_tree: Option<PathBuf>,
    /// Installed Debian packages, sorted by name.
    pub packages: Vec<DebianPackage>,
    /// Top-level Python modules outside the standard library, sorted by name.
    pub python_modules: Vec<String>,
    /// Kernel release.
    pub kernel: String,
    /// Hash of the recipe.
    pub recipe: Sha256Hex,
    /// Size on disk.
    pub bytes: u64,
}

/// A tag and the image it points to.
#[derive(Debug)]
pub struct ImageListing {
    pub name: String,
    pub built: Option<SystemTime>,
    /// The image, or why it cannot be used.
    pub image: Result<SandboxImage, SandboxError>,
}

impl ImageStore {
    /// Opens the store in `folder`, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the image with this name. Compares only file sizes, because it is called before every
    /// sandbox start; [`verify`](Self::verify) compares hashes.
    pub fn find(&self, name: &str) -> Result<SandboxImage, SandboxError> {
        let (sha256, manifest) = self.manifest(name)?;
        let folder = self.folder.join(sha256.to_string());
        for file in &manifest.files {
            let found = folder.join(&file.path).symlink_metadata();
            if !found.is_ok_and(|found| found.is_file() && found.len() == file.bytes) {
                return Err(SandboxError::Image {
                    image: name.to_owned(),
                    problem: format!("`{}` is missing or was changed", file.path),
                });
            }
        }
        let path = |file: &str| folder.join(file);
        let root_tree = manifest.file(TREE).map(|_| path(ROOT));
        if root_tree.as_ref().is_some_and(|root| !root.is_dir()) {
            let problem = format!("`{ROOT}` is missing");
            return Err(SandboxError::Image { image: name.to_owned(), problem });
        }
        Ok(SandboxImage {
            vmlinuz: path(VMLINUZ),
            modules: path(MODULES),
            rootfs: manifest.file(ROOTFS).map(|_| path(ROOTFS)),
            root_tree,
            bytes: manifest.files.iter().map(|file| file.bytes).sum::<u64>() + manifest.root_bytes,
            name: manifest.name,
            sha256,
            folder,
            packages: manifest.packages,
            python_modules: manifest.python_modules,
            kernel: manifest.kernel,
            recipe: manifest.recipe,
        })
    }

    /// All tagged images, sorted by name.
    pub fn list(&self) -> Result<Vec<ImageListing>, SandboxError> {
        let mut names = Vec::new();
        match fs_err::read_dir(self.folder.join(TAGS)) {
            Ok(entries) => {
                let entries = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
                names.extend(entries.filter(|name| recipe::is_name(name)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SandboxError::host("cannot list the images")(error)),
        }
        names.sort();
        let listed = |name: String| {
            let image = self.find(&name);
            let manifest = image.as_ref().ok().map(|image| image.folder.join(MANIFEST));
            let built = manifest.and_then(|path| path.metadata().ok()?.modified().ok());
            ImageListing { name, built, image }
        };
        Ok(names.into_iter().map(listed).collect())
    }

    /// Digests of images without a tag, which are older builds.
    pub fn untagged(&self) -> Result<Vec<Sha256Hex>, SandboxError> {
        let tagged: Vec<_> =
            self.list()?.iter().filter_map(|listed| self.tag(&listed.name).ok()).collect();
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SandboxError::host("cannot list the images")(error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let digests = names.filter_map(|name| Sha256Hex::parse(&name));
        let mut untagged: Vec<_> = digests.filter(|digest| !tagged.contains(digest)).collect();
        untagged.sort();
        Ok(untagged)
    }

    /// Resolves a name to its digest and manifest. Checks the manifest's hash.
    fn manifest(&self, name: &str) -> Result<(Sha256Hex, ImageManifest), SandboxError> {
        let broken = |problem: String| SandboxError::Image { image: name.to_owned(), problem };
        let sha256 = self.tag(name)?;
        let path = self.folder.join(sha256.to_string()).join(MANIFEST);
        let bytes = read_bounded(&path)
            .map_err(|error| broken(format!("cannot read its manifest: {error}")))?;
        let manifest = ImageManifest::from_bytes(&bytes, sha256).map_err(broken)?;
        if manifest.name != name {
            return Err(broken(format!("its tag points to an image named `{}`", manifest.name)));
        }
        Ok((sha256, manifest))
    }

    fn tag(&self, name: &str) -> Result<Sha256Hex, SandboxError> {
        let broken = |problem: &str| SandboxError::Image {
            image: name.to_owned(),
            problem: problem.to_owned(),
        };
        if !recipe::is_name(name) {
            return Err(broken(
                "an image name may contain only lower-case letters, digits and `-`",
            ));
        }
        match read_bounded(&self.folder.join(TAGS).join(name)) {
            Ok(text) => str::from_utf8(&text)
                .ok()
                .and_then(|text| Sha256Hex::parse(text.trim_end()))
                .ok_or_else(|| broken("its tag is not a digest")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(broken("it has not been built"))
            }
            Err(error) => Err(SandboxError::host("cannot read an image tag")(error)),
        }
    }

    /// Moves a finished image into the store and tags it. An existing image with the same digest,
    /// whose files may be damaged, is moved to `retired`.
    fn install(
        &self,
        draft: &Path,
        sha256: Sha256Hex,
        retired: &Path,
        name: &str,
    ) -> Result<(), SandboxError> {
        let install = || -> io::Result<()> {
            let folder = self.folder.join(sha256.to_string());
            if fs_err::rename(draft, &folder).is_err() {
                // A concurrent build of the same image may have been faster both times.
                let _ = fs_err::rename(&folder, retired);
                if let Err(error) = fs_err::rename(draft, &folder)
                    && !folder.is_dir()
                {
                    return Err(error);
                }
            }
            let tags = self.folder.join(TAGS);
            fs_err::create_dir_all(&tags)?;
            let new = retired.with_extension("tag");
            fs_err::write(&new, format!("{sha256}\n"))?;
            fs_err::rename(new, tags.join(name))
        };
        install().map_err(SandboxError::host(format!("cannot install image `{name}`")))
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(MAX_TREE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TREE_BYTES {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
