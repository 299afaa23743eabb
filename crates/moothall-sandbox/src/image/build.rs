//! Builds images from Debian packages.
//!
//! mmdebstrap downloads packages, checks their signatures and unpacks them. Package scripts are not
//! run and nothing is mounted, so no privileges are needed. Recipes do the parts of those scripts
//! that are needed here.

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

use self::kernel::KernelFiles;
use self::packages::PackageSelection;
use super::build_tools::BuildTools;
use super::manifest::{FORMAT, FileEntry, ImageManifest};
use super::mirror_check;
use super::recipe::ImageRecipe;
use super::tree::{self, TreeEntry, TreeNode};
use super::work_folder::WorkFolder;
use super::{BUILDING, ImageStore, MANIFEST, MODULES, ROOT, ROOTFS, SandboxImage, TREE, VMLINUZ};
use crate::SandboxError;

/// Programs whose versions a manifest records, and the flag that prints the version.
const VERSIONED_PROGRAMS: [(&str, &str); 2] =
    [("mmdebstrap", "--version"), ("mksquashfs", "-version")];

/// Other programs that a build needs.
const PROGRAMS: [&str; 2] = ["apt-get", "dpkg-deb"];

#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Package mirrors in mmdebstrap's syntax: a URL or an apt source line. If empty, the host's
    /// apt sources are used, or mmdebstrap's default if the host has none.
    pub mirrors: Vec<String>,
    /// Environment variables. Only `PATH` and proxy settings are used.
    pub environment: BTreeMap<String, OsString>,
}

/// How to treat an existing image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingImagePolicy {
    /// Keep it if it was built from the same recipe.
    Keep,
    /// Rebuild it with the newest packages.
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStep {
    /// Downloading the kernel.
    Kernel,
    /// Downloading and unpacking packages.
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

/// Progress events of a build.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress<'a> {
    /// A step of the named image started.
    Started(&'a str, BuildStep),
    /// A step finished.
    Finished(&'a str, BuildStep, Duration),
}

/// Result of a build.
#[derive(Debug, Clone)]
pub enum BuildOutcome {
    /// An image from the same recipe already existed.
    Kept(SandboxImage),
    /// A new image was installed.
    New(SandboxImage),
}

/// Result of rebuilding an image to check that it is reproducible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RebuildComparison {
    /// The files are identical.
    Same,
    /// Packages or tools differ, so the files cannot be compared. Lists the differences.
    OtherInputs(Vec<String>),
    /// The inputs are the same but these files differ.
    OtherBytes(Vec<String>),
}

/// Builds images one at a time and downloads shared parts once. Dropping the builder or one of its
/// futures leaves nothing behind.
pub struct ImageBuilder<'a> {
    store: &'a ImageStore,
    options: BuildOptions,
    tools: BuildTools,
    progress: Box<dyn FnMut(BuildProgress<'_>) + Send + Sync + 'a>,
    work: Arc<WorkFolder>,
    versions: BTreeMap<String, String>,
    kernel: Option<KernelFiles>,
    drafts: u32,
}

impl fmt::Debug for ImageBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageBuilder").field("store", &self.store).finish_non_exhaustive()
    }
}

/// A complete image that is not installed yet.
struct StagedImage {
    folder: PathBuf,
    manifest: ImageManifest,
    sha256: Sha256Hex,
}

impl<'a> ImageBuilder<'a> {
    /// Creates a builder after checking that all required programs are installed.
    pub async fn new(
        store: &'a ImageStore,
        options: BuildOptions,
        progress: impl FnMut(BuildProgress<'_>) + Send + Sync + 'a,
    ) -> Result<Self, SandboxError> {
        let tools = BuildTools::new(&options.environment);
        let mut versions = BTreeMap::new();
        for (program, flag) in VERSIONED_PROGRAMS {
            versions.insert(program.to_owned(), tools.version(program, flag).await?);
        }
        for program in PROGRAMS {
            tools.find(program)?;
        }
        let work = Arc::new(WorkFolder::new(&store.folder.join(BUILDING))?);
        let progress = Box::new(progress);
        Ok(Self { store, options, tools, progress, work, versions, kernel: None, drafts: 0 })
    }

    /// Programs that a build needs and that are not installed.
    pub fn missing_programs(options: &BuildOptions) -> Vec<&'static str> {
        let tools = BuildTools::new(&options.environment);
        let needed = VERSIONED_PROGRAMS.map(|(program, _)| program).into_iter().chain(PROGRAMS);
        needed.filter(|program| tools.find(program).is_err()).collect()
    }

    /// Fails within two seconds if the packages of a recipe certainly cannot be downloaded.
    pub async fn require_mirror(&self, recipe: &ImageRecipe) -> Result<(), SandboxError> {
        mirror_check::require_mirror(Path::new("/etc"), &recipe.suite, &self.options).await
    }

    /// Builds an image and tags it with the recipe's name.
    pub async fn build(
        &mut self,
        recipe: &ImageRecipe,
        existing: ExistingImagePolicy,
    ) -> Result<BuildOutcome, SandboxError> {
        let made_by = recipe.hash()?;
        if existing == ExistingImagePolicy::Keep
            && let Ok(image) = self.store.find(&recipe.name)
            && image.recipe == made_by
        {
            return Ok(BuildOutcome::Kept(image));
        }
        let draft = self.draft(recipe).await?;
        // No `await` from here on: cancellation leaves either the old image or the new one.
        let retired = self.work.path().join(format!("retired-{}", self.drafts));
        self.store.install(&draft.folder, draft.sha256, &retired, &recipe.name)?;
        self.store.find(&recipe.name).map(BuildOutcome::New)
    }

    /// Rebuilds an image without installing it and compares it with the installed one.
    pub async fn rebuild(
        &mut self,
        recipe: &ImageRecipe,
    ) -> Result<RebuildComparison, SandboxError> {
        let (_, old) = self.store.manifest(&recipe.name)?;
        let draft = self.draft(recipe).await?;
        Ok(compare(&old, &draft.manifest))
    }

    async fn draft(&mut self, recipe: &ImageRecipe) -> Result<StagedImage, SandboxError> {
        self.drafts += 1;
        let area = self.work.path().join(format!("draft-{}", self.drafts));
        let folder = area.join("image");
        fs_err::create_dir_all(&folder)
            .map_err(SandboxError::host("cannot create the image folder"))?;

        let kernel = self.kernel(recipe).await?;
        let copies = [(&kernel.vmlinuz, VMLINUZ), (&kernel.modules, MODULES)];
        for (from, name) in copies {
            fs_err::copy(from, folder.join(name))
                .map_err(SandboxError::host("cannot copy the kernel"))?;
        }
        let mut packages = vec![kernel.package.clone()];
        let mut python_modules = Vec::new();
        if let Some(root) = &recipe.root {
            let tree = folder.join(ROOT);
            let started = self.start(recipe, BuildStep::Packages);
            let wanted = PackageSelection { packages: &root.packages, without: &root.without };
            packages.append(&mut self.unpack(recipe, &area, &tree, wanted).await?);
            self.finish(recipe, BuildStep::Packages, started);
            python_modules = self.prepare_root(recipe, root, &tree).await?;
            self.squash(recipe, &tree, &folder.join(ROOTFS)).await?;
        }
        packages.sort();

        let started = self.start(recipe, BuildStep::Hashes);
        let (files, root_bytes) = self.blocking(move |_| files_of(&area.join("image"))).await?;
        self.finish(recipe, BuildStep::Hashes, started);
        let manifest = ImageManifest {
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
            .map_err(SandboxError::host("cannot write the manifest"))?;
        Ok(StagedImage { folder, manifest, sha256: Sha256Hex::of(&bytes) })
    }

    fn start(&mut self, recipe: &ImageRecipe, step: BuildStep) -> Instant {
        (self.progress)(BuildProgress::Started(&recipe.name, step));
        Instant::now()
    }

    fn finish(&mut self, recipe: &ImageRecipe, step: BuildStep, started: Instant) {
        (self.progress)(BuildProgress::Finished(&recipe.name, step, started.elapsed()));
    }

    /// Runs blocking work on its own thread. The work folder lives until the work is done, even if
    /// the future is dropped.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&WorkFolder) -> Result<T, SandboxError> + Send + 'static,
    ) -> Result<T, SandboxError> {
        let folder = Arc::clone(&self.work);
        tokio::task::spawn_blocking(move || work(&folder)).await.map_err(|error| {
            SandboxError::host("a build step panicked")(std::io::Error::other(error))
        })?
    }
}

/// Hashes the files of an image, writes the tree list, and returns the size of the tree.
fn files_of(folder: &Path) -> Result<(Vec<FileEntry>, u64), SandboxError> {
    let mut root_bytes = 0;
    let root = folder.join(ROOT);
    let mut names = vec![MODULES, VMLINUZ];
    if root.is_dir() {
        names.extend([ROOTFS, TREE]);
        let entries = tree::list(&root)?;
        let size = |entry: &TreeEntry| match entry.node {
            TreeNode::File { bytes, .. } => bytes,
            TreeNode::Folder { .. } | TreeNode::Link { .. } | TreeNode::Other => 0,
        };
        root_bytes = entries.iter().map(size).sum();
        let mut text = canonical_json(&entries).map_err(|error| {
            SandboxError::host("cannot serialize the tree list")(std::io::Error::other(error))
        })?;
        text.push('\n');
        fs_err::write(folder.join(TREE), text)
            .map_err(SandboxError::host("cannot write the tree list"))?;
    }
    names.sort_unstable();
    let entry = |name: &str| -> std::io::Result<FileEntry> {
        let path = folder.join(name);
        let bytes = fs_err::metadata(&path)?.len();
        Ok(FileEntry { path: name.to_owned(), bytes, sha256: tree::hash_file(&path)? })
    };
    let files: std::io::Result<_> = names.into_iter().map(entry).collect();
    Ok((files.map_err(SandboxError::host("cannot hash the image files"))?, root_bytes))
}

fn compare(old: &ImageManifest, new: &ImageManifest) -> RebuildComparison {
    let mut inputs = Vec::new();
    if old.recipe != new.recipe {
        inputs.push("recipe".to_owned());
    }
    for (tool, version) in &new.tools {
        match old.tools.get(tool) {
            Some(before) if before == version => {}
            before => {
                inputs.push(format!("{tool} {} → {version}", before.map_or("none", String::as_str)))
            }
        }
    }
    let version = |manifest: &ImageManifest, name: &str| {
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
        return RebuildComparison::OtherInputs(inputs);
    }
    let differs = |file: &&FileEntry| old.file(&file.path) != Some(*file);
    let mut files: Vec<_> = new.files.iter().filter(differs).map(|it| it.path.clone()).collect();
    if files.is_empty() && old != new {
        files.push(MANIFEST.to_owned());
    }
    if files.is_empty() { RebuildComparison::Same } else { RebuildComparison::OtherBytes(files) }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
