//! Exports images as one file and imports them on another machine.
//!
//! A bundle is a tar archive with a list of images followed by the folder of each. Its content is
//! untrusted: a folder is named by the hash of its manifest, the manifest holds the hash of every
//! other file, and an image is installed and tagged only after every byte has been compared.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, Entry, EntryType, Header};

use super::tree::{self, TreeNode};
use super::work_folder::WorkFolder;
use super::{
    BUILDING, ImageManifest, ImageStore, MANIFEST, ROOT, TREE, read_bounded, recipe, verify,
};
use crate::SandboxError;

/// Version of the bundle format. Other versions are rejected.
const FORMAT: u32 = 1;

/// Name of the first entry, which lists the images.
const LIST: &str = "bundle.json";

/// Size limit of the list.
const MAX_LIST_BYTES: u64 = 64 * 1024;

/// Limit of files, folders and links in one image. The largest current image has 14,000.
const MAX_ENTRIES: usize = 500_000;

/// An image in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleEntry {
    pub name: String,
    /// Hash of the manifest, which covers all other files.
    pub sha256: Sha256Hex,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BundleIndex {
    format: u32,
    images: Vec<BundleEntry>,
}

impl ImageStore {
    /// Verifies images and packs them. The output is reproducible.
    pub fn export(
        &self,
        names: &[String],
        to: impl Write,
    ) -> Result<Vec<BundleEntry>, SandboxError> {
        let mut images = Vec::new();
        for name in names {
            if let Some(problem) = self.verify(name)?.first() {
                let problem = problem.to_string();
                return Err(SandboxError::Image { image: name.clone(), problem });
            }
            images.push(BundleEntry { name: name.clone(), sha256: self.tag(name)? });
        }
        let mut archive = Builder::new(to);
        let list = BundleIndex { format: FORMAT, images };
        self.pack(&mut archive, &list)
            .and_then(|()| archive.into_inner()?.flush())
            .map_err(SandboxError::host("cannot pack the images"))?;
        Ok(list.images)
    }

    fn pack(&self, archive: &mut Builder<impl Write>, list: &BundleIndex) -> io::Result<()> {
        let text = serde_json::to_vec(list)?;
        append(archive, Path::new(LIST), 0o644, text.len() as u64, text.as_slice())?;
        for image in &list.images {
            let digest = image.sha256.to_string();
            let folder = self.folder.join(&digest);
            let bytes = read_bounded(&folder.join(MANIFEST))?;
            let manifest =
                ImageManifest::from_bytes(&bytes, image.sha256).map_err(io::Error::other)?;
            let within = Path::new(&digest);
            append(archive, &within.join(MANIFEST), 0o644, bytes.len() as u64, &*bytes)?;
            for file in &manifest.files {
                let open = fs_err::File::open(folder.join(&file.path))?;
                append(archive, &within.join(&file.path), 0o644, file.bytes, open)?;
            }
            if manifest.file(TREE).is_some() {
                let root = within.join(ROOT);
                append_folder(archive, &root, 0o755)?;
                for entry in verify::listed_tree(&folder)? {
                    let (from, to) = (folder.join(ROOT).join(&entry.path), root.join(&entry.path));
                    match entry.node {
                        TreeNode::Folder { mode } => append_folder(archive, &to, mode)?,
                        TreeNode::File { mode, bytes, .. } => {
                            append(archive, &to, mode, bytes, fs_err::File::open(from)?)?;
                        }
                        TreeNode::Link { target } => {
                            let mut header = header(EntryType::Symlink, 0o777, 0);
                            archive.append_link(&mut header, &to, target)?;
                        }
                        TreeNode::Other => {
                            return Err(io::Error::other(
                                "an image tree contains a device, pipe or socket",
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Unpacks a bundle if all of its images are accepted. Each image is verified against its digest
    /// before it is tagged; the first mismatch stops the import, and nothing of that image is kept.
    pub fn import(
        &self,
        from: impl Read,
        is_accepted: impl Fn(&BundleEntry) -> bool,
    ) -> Result<Vec<BundleEntry>, SandboxError> {
        let mut archive = Archive::new(from);
        let unreadable = |error: io::Error| broken(&error.to_string());
        let mut entries = archive.entries().map_err(unreadable)?;
        let first =
            entries.next().ok_or_else(|| broken("the file is empty"))?.map_err(unreadable)?;
        let list = read_list(first)?;
        if let Some(image) = list.images.iter().find(|image| !is_accepted(image)) {
            return Err(SandboxError::Image {
                image: image.name.clone(),
                problem: format!("unexpected digest {}", image.sha256),
            });
        }
        let work = WorkFolder::new(&self.folder.join(BUILDING))?;
        let mut next = entries.next().transpose().map_err(unreadable)?;
        for image in &list.images {
            let mut draft = ImageImport::new(work.path(), image)?;
            while let Some(entry) = next.take() {
                let path = entry.path().map_err(unreadable)?.into_owned();
                let Ok(within) = path.strip_prefix(image.sha256.to_string()) else {
                    next = Some(entry);
                    break;
                };
                draft.unpack(within, entry)?;
                next = entries.next().transpose().map_err(unreadable)?;
            }
            let folder = draft.finish()?;
            let retired = work.path().join(format!("{}.retired", image.name));
            self.install(&folder, image.sha256, &retired, &image.name)?;
        }
        if next.is_some() {
            return Err(broken("it contains entries that its list does not name"));
        }
        Ok(list.images)
    }
}

fn read_list(entry: Entry<'_, impl Read>) -> Result<BundleIndex, SandboxError> {
    let not_ours = || broken("not an image bundle");
    if entry.path_bytes() != LIST.as_bytes() || entry.header().entry_type() != EntryType::Regular {
        return Err(not_ours());
    }
    let mut text = Vec::new();
    entry.take(MAX_LIST_BYTES).read_to_end(&mut text).map_err(|_| not_ours())?;
    let list: BundleIndex = serde_json::from_slice(&text).map_err(|_| not_ours())?;
    if list.format != FORMAT {
        return Err(broken(&format!(
            "unsupported bundle format {} (this version of moothall reads {FORMAT})",
            list.format
        )));
    }
    if let Some(image) = list.images.iter().find(|image| !recipe::is_name(&image.name)) {
        return Err(broken(&format!("invalid image name {:?}", image.name)));
    }
    Ok(list)
}

/// An image that is being unpacked from a bundle.
struct ImageImport<'a> {
    image: &'a BundleEntry,
    folder: PathBuf,
    manifest: Option<ImageManifest>,
    /// Folders created here. Files are written only into these, so links in the bundle cannot
    /// redirect a write.
    folders: BTreeSet<PathBuf>,
    entries: usize,
    /// Remaining bytes allowed below `root/`.
    root_bytes: u64,
}

impl<'a> ImageImport<'a> {
    fn new(work: &Path, image: &'a BundleEntry) -> Result<Self, SandboxError> {
        let folder = work.join(image.sha256.to_string());
        fs_err::create_dir(&folder)
            .map_err(SandboxError::host("cannot create a folder to unpack images"))?;
        let folders = BTreeSet::from([PathBuf::new()]);
        Ok(Self { image, folder, manifest: None, folders, entries: 0, root_bytes: 0 })
    }

    fn problem(&self, problem: impl Into<String>) -> SandboxError {
        SandboxError::Image { image: self.image.name.clone(), problem: problem.into() }
    }

    fn unpack(&mut self, path: &Path, entry: Entry<'_, impl Read>) -> Result<(), SandboxError> {
        self.entries += 1;
        let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let parent = path.parent().filter(|parent| self.folders.contains(*parent));
        let shown = path.to_string_lossy().into_owned();
        if !is_plain || parent.is_none() || self.entries > MAX_ENTRIES {
            return Err(self.problem(format!("its bundle contains an unexpected entry `{shown}`")));
        }
        let done = match (&self.manifest, entry.header().entry_type()) {
            (None, EntryType::Regular) if path == Path::new(MANIFEST) => self.read_manifest(entry),
            (None, _) => return Err(self.problem("its bundle does not start with its manifest")),
            (Some(_), EntryType::Regular) => self.unpack_file(path, entry),
            (Some(_), EntryType::Directory) if path.starts_with(ROOT) => {
                self.folders.insert(path.to_owned());
                fs_err::create_dir(self.folder.join(path))
            }
            (Some(_), EntryType::Symlink) if path.starts_with(ROOT) => self.make_link(path, &entry),
            _ => {
                return Err(
                    self.problem(format!("its bundle contains an unexpected entry `{shown}`"))
                );
            }
        };
        done.map_err(|error| self.problem(format!("cannot unpack `{shown}`: {error}")))
    }

    fn read_manifest(&mut self, entry: Entry<'_, impl Read>) -> io::Result<()> {
        let mut bytes = Vec::new();
        entry.take(super::MAX_TREE_BYTES).read_to_end(&mut bytes)?;
        let manifest =
            ImageManifest::from_bytes(&bytes, self.image.sha256).map_err(io::Error::other)?;
        if manifest.name != self.image.name {
            return Err(io::Error::other("the manifest belongs to another image"));
        }
        fs_err::write(self.folder.join(MANIFEST), bytes)?;
        self.root_bytes = manifest.root_bytes;
        self.manifest = Some(manifest);
        Ok(())
    }

    /// Sizes are checked before anything is written, so a bundle cannot fill the disk.
    fn unpack_file(&mut self, path: &Path, mut entry: Entry<'_, impl Read>) -> io::Result<()> {
        let bytes = entry.size();
        let other_size = || io::Error::other("its size differs from the manifest");
        if path.starts_with(ROOT) {
            self.root_bytes = self.root_bytes.checked_sub(bytes).ok_or_else(other_size)?;
        } else {
            let listed = path.to_str().and_then(|path| self.manifest.as_ref()?.file(path));
            listed.filter(|file| file.bytes == bytes).ok_or_else(other_size)?;
        }
        let is_program = entry.header().mode()? & 0o111 != 0;
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create_new(true).mode(if is_program { 0o755 } else { 0o644 });
        io::copy(&mut entry, &mut options.open(self.folder.join(path))?)?;
        Ok(())
    }

    fn make_link(&self, path: &Path, entry: &Entry<'_, impl Read>) -> io::Result<()> {
        let target =
            entry.link_name()?.ok_or_else(|| io::Error::other("the link has no target"))?;
        fs_err::os::unix::fs::symlink(target, self.folder.join(path))
    }

    fn finish(self) -> Result<PathBuf, SandboxError> {
        let Some(manifest) = &self.manifest else {
            return Err(self.problem("it is missing from its bundle"));
        };
        if self.folders.contains(Path::new(ROOT)) {
            tree::normalise(&self.folder.join(ROOT))?;
        }
        match verify::compare(&self.folder, manifest)?.first() {
            Some(problem) => Err(self.problem(problem.to_string())),
            None => Ok(self.folder),
        }
    }
}

fn broken(problem: &str) -> SandboxError {
    SandboxError::host("cannot read the bundle")(io::Error::other(problem))
}

fn header(kind: EntryType, mode: u32, bytes: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn append(
    archive: &mut Builder<impl Write>,
    path: &Path,
    mode: u32,
    bytes: u64,
    data: impl Read,
) -> io::Result<()> {
    archive.append_data(&mut header(EntryType::Regular, mode, bytes), path, data)
}

fn append_folder(archive: &mut Builder<impl Write>, path: &Path, mode: u32) -> io::Result<()> {
    archive.append_data(&mut header(EntryType::Directory, mode, 0), path, io::empty())
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
