//! Images: the kernel and the root file systems that sandboxes are made of.
//!
//! An image is a folder named by the hash of its manifest, and the manifest holds the hash of
//! everything else in it. A tag, a small file, says which image a name means:
//!
//! ```text
//! <images>/tags/python             the digest and a line break
//! <images>/<digest>/manifest.json  format, recipe, packages, tools, files
//! <images>/<digest>/vmlinuz        the kernel
//! <images>/<digest>/modules.cpio   the first part of the initramfs; the agent is the second
//! <images>/<digest>/rootfs.sqfs    the root file system for a microVM
//! <images>/<digest>/root           the same for a container
//! <images>/<digest>/tree.json      what is in root/, with hashes
//! <images>/building/               work in progress
//! ```
//!
//! Images are built once, by [`ImageBuilder`], and never changed. Nothing fetches anything when a
//! sandbox starts.

mod archive;
mod build;
mod bundle;
mod manifest;
mod recipe;
mod sources;
mod tool;
mod tree;
mod verify;
mod work;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use moothall_core::Sha256Hex;

pub use self::archive::init_archive;
pub use self::build::{BuildOptions, BuildStep, Built, Existing, ImageBuilder, Progress, Rebuilt};
pub use self::bundle::Bundled;
pub use self::manifest::{FileEntry, Manifest, Package};
pub use self::recipe::{KernelRecipe, Recipe, RootRecipe};
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

/// The most that is read of a manifest or of the list of a tree. The largest of ours has 3 MB.
const LARGEST_LIST: u64 = 64 * 1024 * 1024;

/// The images of one folder.
#[derive(Debug, Clone)]
pub struct ImageStore {
    folder: PathBuf,
}

/// An image that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name.
    pub name: String,
    /// The hash of its manifest, and so of everything in it.
    pub sha256: Sha256Hex,
    /// Its folder.
    pub folder: PathBuf,
    /// The kernel.
    pub vmlinuz: PathBuf,
    /// The first part of the initramfs. [`init_archive`] makes the second.
    pub modules: PathBuf,
    /// The root file system as squashfs.
    pub rootfs: Option<PathBuf>,
    /// The root file system as a folder.
    pub root_tree: Option<PathBuf>,
    /// Its Debian packages, by name.
    pub packages: Vec<Package>,
    /// Top-level modules that Python finds beyond its standard library, by name.
    pub python_modules: Vec<String>,
    /// The kernel's release.
    pub kernel: String,
    /// The hash of its recipe.
    pub recipe: Sha256Hex,
    /// What it takes on disk.
    pub bytes: u64,
}

/// A tag, and what it leads to.
#[derive(Debug)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// When the image was built.
    pub built: Option<SystemTime>,
    /// The image, or why it cannot be used.
    pub image: Result<Image, SandboxError>,
}

impl ImageStore {
    /// The images in `folder`, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The image of that name. Sizes are compared here and hashes by [`verify`](Self::verify): this
    /// is asked before every start of a sandbox.
    pub fn find(&self, name: &str) -> Result<Image, SandboxError> {
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
        Ok(Image {
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

    /// All names that were given, in their order.
    pub fn list(&self) -> Result<Vec<Listed>, SandboxError> {
        let mut names = Vec::new();
        match fs_err::read_dir(self.folder.join(TAGS)) {
            Ok(entries) => {
                let entries = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
                names.extend(entries.filter(|name| recipe::is_name(name)));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SandboxError::host("the images cannot be listed")(error)),
        }
        names.sort();
        let listed = |name: String| {
            let image = self.find(&name);
            let manifest = image.as_ref().ok().map(|image| image.folder.join(MANIFEST));
            let built = manifest.and_then(|path| path.metadata().ok()?.modified().ok());
            Listed { name, built, image }
        };
        Ok(names.into_iter().map(listed).collect())
    }

    /// The digests of images that no name leads to any more: older builds.
    pub fn untagged(&self) -> Result<Vec<Sha256Hex>, SandboxError> {
        let tagged: Vec<_> =
            self.list()?.iter().filter_map(|listed| self.tag(&listed.name).ok()).collect();
        let entries = match fs_err::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(SandboxError::host("the images cannot be listed")(error)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let digests = names.filter_map(|name| Sha256Hex::parse(&name));
        let mut untagged: Vec<_> = digests.filter(|digest| !tagged.contains(digest)).collect();
        untagged.sort();
        Ok(untagged)
    }

    /// Which image a name means, and its manifest, whose hash is compared.
    fn manifest(&self, name: &str) -> Result<(Sha256Hex, Manifest), SandboxError> {
        let broken = |problem: String| SandboxError::Image { image: name.to_owned(), problem };
        let sha256 = self.tag(name)?;
        let path = self.folder.join(sha256.to_string()).join(MANIFEST);
        let bytes = read_bounded(&path)
            .map_err(|error| broken(format!("its manifest cannot be read: {error}")))?;
        let manifest = Manifest::from_bytes(&bytes, sha256).map_err(broken)?;
        if manifest.name != name {
            return Err(broken(format!("its tag leads to an image called `{}`", manifest.name)));
        }
        Ok((sha256, manifest))
    }

    fn tag(&self, name: &str) -> Result<Sha256Hex, SandboxError> {
        let broken = |problem: &str| SandboxError::Image {
            image: name.to_owned(),
            problem: problem.to_owned(),
        };
        if !recipe::is_name(name) {
            return Err(broken("a name has lower-case letters, digits and `-`"));
        }
        match read_bounded(&self.folder.join(TAGS).join(name)) {
            Ok(text) => str::from_utf8(&text)
                .ok()
                .and_then(|text| Sha256Hex::parse(text.trim_end()))
                .ok_or_else(|| broken("its tag is not a digest")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(broken("it has not been built"))
            }
            Err(error) => Err(SandboxError::host("a tag cannot be read")(error)),
        }
    }

    /// Moves a finished image to its place and gives it a name. `retired` is where the one goes that
    /// may be there already: it has the same digest, and its files may have been damaged since.
    fn place(
        &self,
        draft: &Path,
        sha256: Sha256Hex,
        retired: &Path,
        name: &str,
    ) -> Result<(), SandboxError> {
        let place = || -> io::Result<()> {
            let folder = self.folder.join(sha256.to_string());
            if fs_err::rename(draft, &folder).is_err() {
                // Somebody who builds the same at the same time may have been quicker, twice.
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
        place().map_err(SandboxError::host(format!("image `{name}` cannot be put in its place")))
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(LARGEST_LIST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_LIST {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
