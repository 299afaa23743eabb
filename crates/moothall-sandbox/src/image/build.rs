//! Building: Debian packages in, an image's folder out.
//!
//! mmdebstrap fetches packages and checks their signatures; it only unpacks them. No script of a
//! package is run and nothing is mounted, so no privilege is needed. What the scripts would have done
//! and is of use here, recipes do.

mod kernel;
mod packages;
mod root;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moothall_core::{Sha256Hex, canonical_json};

use self::kernel::Kernel;
use self::packages::Wanted;
use super::manifest::{FORMAT, FileEntry, Manifest};
use super::recipe::Recipe;
use super::tool::Tools;
use super::tree::{self, Node, TreeEntry};
use super::work::WorkFolder;
use super::{BUILDING, Image, ImageStore, MANIFEST, MODULES, ROOT, ROOTFS, TREE, VMLINUZ};
use crate::SandboxError;

/// How to build.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Where packages come from, in the words of mmdebstrap: an address, or a line of apt's. Left
    /// empty: where the host's own apt looks, and what mmdebstrap knows where the host has none.
    pub mirrors: Vec<String>,
    /// The environment: `PATH`, and proxies. Nothing else of it is used.
    pub environment: BTreeMap<String, OsString>,
}

/// What to do with an image that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Keep it, if it was made by the same recipe.
    Keep,
    /// Build again, with the newest packages.
    Replace,
}

/// A step of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStep {
    /// Fetching the kernel.
    Kernel,
    /// Fetching and unpacking packages.
    Packages,
    /// Compiling Python's modules.
    Bytecode,
    /// Writing the root file system.
    Squash,
    /// Listing and hashing files.
    Hashes,
}

impl fmt::Display for BuildStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "kernel",
            Self::Packages => "packages",
            Self::Bytecode => "bytecode",
            Self::Squash => "file system",
            Self::Hashes => "hashes",
        })
    }
}

/// What a builder tells while it works.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A step of the named image began.
    Started(&'a str, BuildStep),
    /// It is done.
    Finished(&'a str, BuildStep, Duration),
}

/// What came of a build.
#[derive(Debug, Clone)]
pub enum Built {
    /// There was one by the same recipe.
    Kept(Image),
    /// A new one is in place.
    New(Image),
}

/// What building an image again showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuilt {
    /// The same bytes.
    Same,
    /// Other packages or tools, so nothing can be said. In words, what is different.
    OtherInputs(Vec<String>),
    /// The same inputs and other bytes: these files.
    OtherBytes(Vec<String>),
}

/// Builds images, one after the other; what they share is fetched once. Dropping it, or a future of
/// it, leaves nothing behind.
pub struct ImageBuilder<'a> {
    store: &'a ImageStore,
    options: BuildOptions,
    tools: Tools,
    progress: Box<dyn FnMut(Progress<'_>) + Send + 'a>,
    work: Arc<WorkFolder>,
    versions: BTreeMap<String, String>,
    kernel: Option<Kernel>,
    drafts: u32,
}

impl fmt::Debug for ImageBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageBuilder").field("store", &self.store).finish_non_exhaustive()
    }
}

/// An image that is complete but has no place yet.
struct Draft {
    folder: PathBuf,
    manifest: Manifest,
    sha256: Sha256Hex,
}

impl<'a> ImageBuilder<'a> {
    /// A builder whose programs are all there.
    pub async fn new(
        store: &'a ImageStore,
        options: BuildOptions,
        progress: impl FnMut(Progress<'_>) + Send + 'a,
    ) -> Result<Self, SandboxError> {
        let tools = Tools::new(&options.environment);
        let mut versions = BTreeMap::new();
        for (program, flag) in [("mmdebstrap", "--version"), ("mksquashfs", "-version")] {
            versions.insert(program.to_owned(), tools.version(program, flag).await?);
        }
        for program in ["apt-get", "dpkg-deb"] {
            tools.find(program)?;
        }
        let work = Arc::new(WorkFolder::new(&store.folder.join(BUILDING))?);
        let progress = Box::new(progress);
        Ok(Self { store, options, tools, progress, work, versions, kernel: None, drafts: 0 })
    }

    /// Builds an image and gives it the recipe's name.
    pub async fn build(
        &mut self,
        recipe: &Recipe,
        existing: Existing,
    ) -> Result<Built, SandboxError> {
        let made_by = recipe.hash()?;
        if existing == Existing::Keep
            && let Ok(image) = self.store.find(&recipe.name)
            && image.recipe == made_by
        {
            return Ok(Built::Kept(image));
        }
        let draft = self.draft(recipe).await?;
        // No waiting from here on: cancelling leaves the old image or the new one.
        let retired = self.work.path().join(format!("retired-{}", self.drafts));
        self.store.place(&draft.folder, draft.sha256, &retired, &recipe.name)?;
        self.store.find(&recipe.name).map(Built::New)
    }

    /// Builds an image again, puts it nowhere, and compares it with the one that is there.
    pub async fn rebuild(&mut self, recipe: &Recipe) -> Result<Rebuilt, SandboxError> {
        let (_, old) = self.store.manifest(&recipe.name)?;
        let draft = self.draft(recipe).await?;
        Ok(compare(&old, &draft.manifest))
    }

    async fn draft(&mut self, recipe: &Recipe) -> Result<Draft, SandboxError> {
        self.drafts += 1;
        let area = self.work.path().join(format!("draft-{}", self.drafts));
        let folder = area.join("image");
        fs_err::create_dir_all(&folder).map_err(SandboxError::host("an image has no folder"))?;

        let kernel = self.kernel(recipe).await?;
        let copies = [(&kernel.vmlinuz, VMLINUZ), (&kernel.modules, MODULES)];
        for (from, name) in copies {
            fs_err::copy(from, folder.join(name))
                .map_err(SandboxError::host("the kernel cannot be copied"))?;
        }
        let mut packages = vec![kernel.package.clone()];
        let mut python_modules = Vec::new();
        if let Some(root) = &recipe.root {
            let tree = folder.join(ROOT);
            let begun = self.start(recipe, BuildStep::Packages);
            let wanted = Wanted { packages: &root.packages, without: &root.without };
            packages.append(&mut self.unpack(recipe, &area, &tree, wanted).await?);
            self.finish(recipe, BuildStep::Packages, begun);
            python_modules = self.furnish(recipe, root, &tree).await?;
            self.squash(recipe, &tree, &folder.join(ROOTFS)).await?;
        }
        packages.sort();

        let begun = self.start(recipe, BuildStep::Hashes);
        let (files, root_bytes) = self.blocking(move |_| files_of(&area.join("image"))).await?;
        self.finish(recipe, BuildStep::Hashes, begun);
        let manifest = Manifest {
            format: FORMAT,
            name: recipe.name.clone(),
            recipe: recipe.hash()?,
            suite: recipe.suite.clone(),
            kernel: kernel.release,
            packages,
            python_modules,
            tools: self.versions.clone(),
            files,
            root_bytes,
        };
        let broken = |problem| SandboxError::Image { image: recipe.name.clone(), problem };
        let bytes = manifest.to_bytes().map_err(broken)?;
        fs_err::write(folder.join(MANIFEST), &bytes)
            .map_err(SandboxError::host("the manifest cannot be written"))?;
        Ok(Draft { folder, manifest, sha256: Sha256Hex::of(&bytes) })
    }

    fn start(&mut self, recipe: &Recipe, step: BuildStep) -> Instant {
        (self.progress)(Progress::Started(&recipe.name, step));
        Instant::now()
    }

    fn finish(&mut self, recipe: &Recipe, step: BuildStep, begun: Instant) {
        (self.progress)(Progress::Finished(&recipe.name, step, begun.elapsed()));
    }

    /// Does work that takes a while on a thread of its own. The work folder stays until it is done,
    /// also when nobody waits for it any more.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorkFolder) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let folder = Arc::clone(&self.work);
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(|error| {
            SandboxError::host("a step of the build broke off")(std::io::Error::other(error))
        })?
    }
}

/// Lists the files of an image, writes the list of its tree, and says how large the tree is.
fn files_of(folder: &Path) -> Result<(Vec<FileEntry>, u64), SandboxError> {
    let mut root_bytes = 0;
    let root = folder.join(ROOT);
    let mut names = vec![MODULES, VMLINUZ];
    if root.is_dir() {
        names.extend([ROOTFS, TREE]);
        let entries = tree::list(&root)?;
        let size = |entry: &TreeEntry| match entry.node {
            Node::File { bytes, .. } => bytes,
            Node::Folder { .. } | Node::Link { .. } | Node::Other => 0,
        };
        root_bytes = entries.iter().map(size).sum();
        let mut text = canonical_json(&entries).map_err(|error| {
            SandboxError::host("the tree cannot be listed")(std::io::Error::other(error))
        })?;
        text.push('\n');
        fs_err::write(folder.join(TREE), text)
            .map_err(SandboxError::host("the list of the tree cannot be written"))?;
    }
    names.sort_unstable();
    let entry = |name: &str| -> std::io::Result<FileEntry> {
        let path = folder.join(name);
        let bytes = fs_err::metadata(&path)?.len();
        Ok(FileEntry { path: name.to_owned(), bytes, sha256: tree::hash_file(&path)? })
    };
    let files: std::io::Result<_> = names.into_iter().map(entry).collect();
    Ok((files.map_err(SandboxError::host("the image's files cannot be hashed"))?, root_bytes))
}

fn compare(old: &Manifest, new: &Manifest) -> Rebuilt {
    let mut inputs = Vec::new();
    if old.recipe != new.recipe {
        inputs.push("the recipe".to_owned());
    }
    for (tool, version) in &new.tools {
        match old.tools.get(tool) {
            Some(before) if before == version => {}
            before => {
                inputs.push(format!("{tool} {} → {version}", before.map_or("none", String::as_str)))
            }
        }
    }
    let version = |manifest: &Manifest, name: &str| {
        manifest.packages.iter().find(|it| it.name == name).map(|it| it.version.clone())
    };
    let names: std::collections::BTreeSet<_> =
        old.packages.iter().chain(&new.packages).map(|package| &package.name).collect();
    for name in names {
        let (before, after) = (version(old, name), version(new, name));
        if before != after {
            let words = |version: Option<String>| version.unwrap_or_else(|| "none".to_owned());
            inputs.push(format!("{name} {} → {}", words(before), words(after)));
        }
    }
    if !inputs.is_empty() {
        return Rebuilt::OtherInputs(inputs);
    }
    let differs = |file: &&FileEntry| old.file(&file.path) != Some(*file);
    let mut files: Vec<_> = new.files.iter().filter(differs).map(|it| it.path.clone()).collect();
    if files.is_empty() && old != new {
        files.push(MANIFEST.to_owned());
    }
    if files.is_empty() { Rebuilt::Same } else { Rebuilt::OtherBytes(files) }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
