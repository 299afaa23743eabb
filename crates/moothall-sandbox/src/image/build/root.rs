//! Turns unpacked packages into the root file system that a recipe describes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::super::recipe::{ImageRecipe, RootRecipe};
use super::super::tree;
use super::{BuildStep, ImageBuilder};
use crate::SandboxError;

/// Where Debian's Python packages install modules.
const DIST_PACKAGES: &str = "usr/lib/python3/dist-packages";

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

impl ImageBuilder<'_> {
    /// Applies the recipe to unpacked packages and returns the Python modules outside the standard
    /// library.
    pub(crate) async fn prepare_root(
        &mut self,
        recipe: &ImageRecipe,
        root: &RootRecipe,
        tree: &Path,
    ) -> Result<Vec<String>, SandboxError> {
        let (recipe_of_root, folder) = (root.clone(), tree.to_owned());
        self.blocking(move |_| {
            change(&folder, &recipe_of_root)
                .map_err(SandboxError::host("cannot prepare the root file system"))
        })
        .await?;
        self.compile(recipe, tree).await?;
        let folder = tree.to_owned();
        self.blocking(move |_| {
            tree::normalise(&folder)?;
            python_modules(&folder.join(DIST_PACKAGES))
                .map_err(SandboxError::host("cannot list Python modules"))
        })
        .await
    }

    /// Compiles Python modules ahead of time. Uses the image's own Python through its own loader,
    /// because another version writes a different bytecode format.
    async fn compile(&mut self, recipe: &ImageRecipe, tree: &Path) -> Result<(), SandboxError> {
        let Some(python) = interpreter(tree) else { return Ok(()) };
        let started = self.start(recipe, BuildStep::Bytecode);
        let mut command = self.tools.command(tree.join(LIBRARIES).join("ld-linux-x86-64.so.2"));
        command
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .env("PYTHONHOME", tree.join("usr"))
            // Set order ends up in the bytecode.
            .env("PYTHONHASHSEED", "0")
            .arg("--library-path")
            .arg(tree.join(LIBRARIES))
            .arg(&python.program)
            // One process: a file's bytecode can depend on the files compiled before it.
            .args(["-S", "-s", "-B", "-m", "compileall", "-q", "-f", "-j", "1"])
            // Bytecode is matched by hash instead of time and never checked, because the root never
            // changes.
            .args(["--invalidation-mode", "unchecked-hash"])
            .arg("-s")
            .arg(tree)
            .args(["-p", "/"])
            .args(python.folders.iter().filter(|folder| folder.is_dir()));
        self.tools.run_checked("cannot compile Python modules", &mut command).await?;
        self.finish(recipe, BuildStep::Bytecode, started);
        Ok(())
    }

    /// Writes the squashfs that a microVM mounts.
    pub(crate) async fn squash(
        &mut self,
        recipe: &ImageRecipe,
        tree: &Path,
        out: &Path,
    ) -> Result<(), SandboxError> {
        let started = self.start(recipe, BuildStep::Squash);
        let mut command = self.tools.command(self.tools.find("mksquashfs")?);
        command
            .arg(tree)
            .arg(out)
            // Level 6 takes one second; the default level 15 takes fifty and saves a tenth of the
            // size.
            .args(["-comp", "zstd", "-Xcompression-level", "6", "-b", "131072"])
            .args(["-all-root", "-no-xattrs", "-noappend", "-mkfs-time", "0", "-all-time", "0"])
            .args(["-quiet", "-no-progress"]);
        self.tools.run_checked("cannot write the root file system", &mut command).await?;
        self.finish(recipe, BuildStep::Squash, started);
        Ok(())
    }
}

struct PythonInterpreter {
    program: PathBuf,
    /// Folders with modules.
    folders: [PathBuf; 2],
}

/// Finds a root's Python by its library folder `usr/lib/python3.N`.
fn interpreter(tree: &Path) -> Option<PythonInterpreter> {
    let entries = fs_err::read_dir(tree.join("usr/lib")).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut versions: Vec<_> = names.filter(|name| name.starts_with("python3.")).collect();
    versions.sort();
    let name = versions.pop()?;
    let program = tree.join("usr/bin").join(&name);
    let folders = [tree.join("usr/lib").join(name), tree.join(DIST_PACKAGES)];
    program.is_file().then_some(PythonInterpreter { program, folders })
}

fn change(tree: &Path, recipe: &RootRecipe) -> io::Result<()> {
    for path in &recipe.remove {
        remove(&tree.join(path))?;
    }
    // Keep the copyright files of packages and delete the rest of their documentation.
    let docs = tree.join("usr/share/doc");
    if docs.is_dir() {
        let mut surplus = Vec::new();
        tree::walk(&docs, "", 0, &mut |path, relative| {
            if !relative.ends_with("/copyright") && !path.symlink_metadata()?.is_dir() {
                surplus.push(path.to_owned());
            }
            Ok(())
        })?;
        surplus.iter().try_for_each(|path| remove(path))?;
        remove_empty(&docs)?;
    }
    let modules = tree.join(DIST_PACKAGES);
    if modules.is_dir() {
        tree::remove_folders_named(&modules, &|name| recipe.remove_folders_named.contains(name))?;
    }
    for path in &recipe.folders {
        // Anything inside a mount point would be hidden.
        remove(&tree.join(path))?;
        fs_err::create_dir_all(tree.join(path))?;
    }
    for (path, text) in &recipe.files {
        let path = clear_path(tree, path)?;
        fs_err::write(path, text)?;
    }
    for (path, target) in &recipe.links {
        let path = clear_path(tree, path)?;
        fs_err::os::unix::fs::symlink(target, path)?;
    }
    Ok(())
}

/// Removes whatever is at a path in the tree and creates its parent folder.
fn clear_path(tree: &Path, path: &str) -> io::Result<PathBuf> {
    let path = tree.join(path);
    remove(&path)?;
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    Ok(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs_err::remove_dir_all(path),
        Ok(_) => fs_err::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove_empty(folder: &Path) -> io::Result<()> {
    let mut folders = Vec::new();
    tree::walk(folder, "", 0, &mut |path, _| {
        if path.symlink_metadata()?.is_dir() {
            folders.push(path.to_owned());
        }
        Ok(())
    })?;
    // `walk` visits inner folders before outer ones.
    for folder in folders {
        if fs_err::read_dir(&folder)?.next().is_none() {
            fs_err::remove_dir(&folder)?;
        }
    }
    Ok(())
}

/// Names that can be imported from a package folder: modules, extensions, and folders that contain
/// either.
fn python_modules(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = BTreeSet::new();
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    tree::walk(folder, "", 0, &mut |path, relative| {
        let is_code = [".py", ".so"].iter().any(|ending| relative.ends_with(ending));
        if is_code && !path.symlink_metadata()?.is_dir() {
            let first = relative.split('/').next().unwrap_or(relative);
            let name = if first == relative { first.split('.').next() } else { Some(first) };
            names.extend(name.filter(|name| is_identifier(name)).map(str::to_owned));
        }
        Ok(())
    })?;
    Ok(names.into_iter().collect())
}

fn is_identifier(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.chars().all(fits)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.starts_with("__")
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
