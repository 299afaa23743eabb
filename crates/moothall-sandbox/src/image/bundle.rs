//! Images as one file, packed on one machine and unpacked on another.
//!
//! A tar archive: a list of the images, then the folder of each. Whoever unpacks it trusts nothing in
//! it. A folder's name is the hash of its manifest, the manifest has the hash of everything else, and an
//! image gets its place and its name only after every byte was compared.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use moothall_core::Sha256Hex;
use serde::{Deserialize, Serialize};
use tar::{Archive, Builder, Entry, EntryType, Header};

use super::tree::{self, Node};
use super::work::WorkFolder;
use super::{BUILDING, ImageStore, MANIFEST, Manifest, ROOT, TREE, read_bounded, recipe, verify};
use crate::SandboxError;

/// The number of this form. A reader that does not know it reads nothing.
const FORMAT: u32 = 1;

/// The first entry: what follows.
const LIST: &str = "bundle.json";

/// The longest list that is read.
const MAX_LIST_BYTES: u64 = 64 * 1024;

/// The most files, folders and links of one image. The largest of ours has 14,000.
const MAX_ENTRIES: usize = 500_000;

/// An image of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bundled {
    /// Its name.
    pub name: String,
    /// The hash of its manifest, and so of everything in it.
    pub sha256: Sha256Hex,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    format: u32,
    images: Vec<Bundled>,
}

impl ImageStore {
    /// Packs images that are what their digests say. The same images make the same bytes.
    pub fn export(&self, names: &[String], to: impl Write) -> Result<Vec<Bundled>, SandboxError> {
        let mut images = Vec::new();
        for name in names {
            if let Some(problem) = self.verify(name)?.first() {
                let problem = problem.to_string();
                return Err(SandboxError::Image { image: name.clone(), problem });
            }
            images.push(Bundled { name: name.clone(), sha256: self.tag(name)? });
        }
        let mut archive = Builder::new(to);
        let list = List { format: FORMAT, images };
        self.pack(&mut archive, &list)
            .and_then(|()| archive.into_inner()?.flush())
            .map_err(SandboxError::host("the images cannot be packed"))?;
        Ok(list.images)
    }

    fn pack(&self, archive: &mut Builder<impl Write>, list: &List) -> io::Result<()> {
        let text = serde_json::to_vec(list)?;
        append(archive, Path::new(LIST), 0o644, text.len() as u64, text.as_slice())?;
        for image in &list.images {
            let digest = image.sha256.to_string();
            let folder = self.folder.join(&digest);
            let bytes = read_bounded(&folder.join(MANIFEST))?;
            let manifest = Manifest::from_bytes(&bytes, image.sha256).map_err(io::Error::other)?;
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
                        Node::Folder { mode } => append_folder(archive, &to, mode)?,
                        Node::File { mode, bytes, .. } => {
                            append(archive, &to, mode, bytes, fs_err::File::open(from)?)?;
                        }
                        Node::Link { target } => {
                            let mut header = header(EntryType::Symlink, 0o777, 0);
                            archive.append_link(&mut header, &to, target)?;
                        }
                        Node::Other => return Err(io::Error::other("a tree has a device")),
                    }
                }
            }
        }
        Ok(())
    }

    /// Unpacks a bundle. Each image is compared with its digest before it gets its name; one that is
    /// not what it says ends the work, and nothing of it is left.
    pub fn import(&self, from: impl Read) -> Result<Vec<Bundled>, SandboxError> {
        let mut archive = Archive::new(from);
        let unreadable = |error: io::Error| broken(&error.to_string());
        let mut entries = archive.entries().map_err(unreadable)?;
        let first = entries.next().ok_or_else(|| broken("it is empty"))?.map_err(unreadable)?;
        let list = read_list(first)?;
        let work = WorkFolder::new(&self.folder.join(BUILDING))?;
        let mut next = entries.next().transpose().map_err(unreadable)?;
        for image in &list.images {
            let mut draft = Draft::new(work.path(), image)?;
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
            self.place(&folder, image.sha256, &retired, &image.name)?;
        }
        if next.is_some() {
            return Err(broken("there is more in it than it says"));
        }
        Ok(list.images)
    }
}

fn read_list(entry: Entry<'_, impl Read>) -> Result<List, SandboxError> {
    let not_ours = || broken("it is no bundle of images");
    if entry.path_bytes() != LIST.as_bytes() || entry.header().entry_type() != EntryType::Regular {
        return Err(not_ours());
    }
    let mut text = Vec::new();
    entry.take(MAX_LIST_BYTES).read_to_end(&mut text).map_err(|_| not_ours())?;
    let list: List = serde_json::from_slice(&text).map_err(|_| not_ours())?;
    if list.format != FORMAT {
        return Err(broken(&format!(
            "it has format {}, and this version of moothall reads {FORMAT}",
            list.format
        )));
    }
    if let Some(image) = list.images.iter().find(|image| !recipe::is_name(&image.name)) {
        return Err(broken(&format!("{:?} is no name of an image", image.name)));
    }
    Ok(list)
}

/// An image on its way out of a bundle.
struct Draft<'a> {
    image: &'a Bundled,
    folder: PathBuf,
    manifest: Option<Manifest>,
    /// The folders that were made here. Nothing is written but into one of them, so a link leads
    /// nothing astray.
    folders: BTreeSet<PathBuf>,
    entries: usize,
    /// How many bytes may still come below `root/`.
    root_bytes: u64,
}

impl<'a> Draft<'a> {
    fn new(work: &Path, image: &'a Bundled) -> Result<Self, SandboxError> {
        let folder = work.join(image.sha256.to_string());
        fs_err::create_dir(&folder)
            .map_err(SandboxError::host("there is no place to unpack images in"))?;
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
            return Err(self.problem(format!("its bundle has `{shown}`, which no image has")));
        }
        let done = match (&self.manifest, entry.header().entry_type()) {
            (None, EntryType::Regular) if path == Path::new(MANIFEST) => self.read_manifest(entry),
            (None, _) => return Err(self.problem("its bundle does not begin with its manifest")),
            (Some(_), EntryType::Regular) => self.unpack_file(path, entry),
            (Some(_), EntryType::Directory) if path.starts_with(ROOT) => {
                self.folders.insert(path.to_owned());
                fs_err::create_dir(self.folder.join(path))
            }
            (Some(_), EntryType::Symlink) if path.starts_with(ROOT) => self.make_link(path, &entry),
            _ => return Err(self.problem(format!("its bundle has `{shown}`, which no image has"))),
        };
        done.map_err(|error| self.problem(format!("`{shown}` cannot be unpacked: {error}")))
    }

    fn read_manifest(&mut self, entry: Entry<'_, impl Read>) -> io::Result<()> {
        let mut bytes = Vec::new();
        entry.take(super::LARGEST_LIST).read_to_end(&mut bytes)?;
        let manifest = Manifest::from_bytes(&bytes, self.image.sha256).map_err(io::Error::other)?;
        if manifest.name != self.image.name {
            return Err(io::Error::other("it belongs to another image"));
        }
        fs_err::write(self.folder.join(MANIFEST), bytes)?;
        self.root_bytes = manifest.root_bytes;
        self.manifest = Some(manifest);
        Ok(())
    }

    /// Sizes are checked before anything is written, so that a bundle cannot fill the disk.
    fn unpack_file(&mut self, path: &Path, mut entry: Entry<'_, impl Read>) -> io::Result<()> {
        let bytes = entry.size();
        let other_size = || io::Error::other("it has another size than its manifest says");
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
        let target = entry.link_name()?.ok_or_else(|| io::Error::other("it leads nowhere"))?;
        fs_err::os::unix::fs::symlink(target, self.folder.join(path))
    }

    fn finish(self) -> Result<PathBuf, SandboxError> {
        let Some(manifest) = &self.manifest else {
            return Err(self.problem("it is not in its bundle"));
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
    SandboxError::host("the bundle cannot be read")(io::Error::other(problem))
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
