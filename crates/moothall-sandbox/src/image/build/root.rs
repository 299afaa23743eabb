//! The root file system: unpacked packages, furnished by the recipe.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::super::recipe::{Recipe, RootRecipe};
use super::super::tree;
use super::{BuildStep, ImageBuilder};
use crate::SandboxError;

/// Where Debian's packages of Python put their modules.
const DIST_PACKAGES: &str = "usr/lib/python3/dist-packages";

const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

impl ImageBuilder<'_> {
    /// Makes unpacked packages what the recipe says, and tells which modules of Python there are
    /// beyond the standard library.
    pub(super) async fn furnish(
        &mut self,
        recipe: &Recipe,
        root: &RootRecipe,
        tree: &Path,
    ) -> Result<Vec<String>, SandboxError> {
        let (recipe_of_root, folder) = (root.clone(), tree.to_owned());
        self.blocking(move |_| {
            change(&folder, &recipe_of_root)
                .map_err(SandboxError::host("the root file system cannot be furnished"))
        })
        .await?;
        self.compile(recipe, tree).await?;
        let folder = tree.to_owned();
        self.blocking(move |_| {
            tree::normalise(&folder)?;
            python_modules(&folder.join(DIST_PACKAGES))
                .map_err(SandboxError::host("Python's modules cannot be listed"))
        })
        .await
    }

    /// Compiles Python's modules, so that no program spends its time on that. The image's own Python
    /// does it, through its own loader, because another version would write another form.
    async fn compile(&mut self, recipe: &Recipe, tree: &Path) -> Result<(), SandboxError> {
        let Some(python) = interpreter(tree) else { return Ok(()) };
        let begun = self.start(recipe, BuildStep::Bytecode);
        let mut command = self.tools.command(tree.join(LIBRARIES).join("ld-linux-x86-64.so.2"));
        command
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .env("PYTHONHOME", tree.join("usr"))
            // The order of sets is written into the files.
            .env("PYTHONHASHSEED", "0")
            .arg("--library-path")
            .arg(tree.join(LIBRARIES))
            .arg(&python.program)
            // One process: what a file's bytecode looks like can depend on the files before it.
            .args(["-S", "-s", "-B", "-m", "compileall", "-q", "-f", "-j", "1"])
            // By hash instead of by time, and never checked, because the root never changes.
            .args(["--invalidation-mode", "unchecked-hash"])
            .arg("-s")
            .arg(tree)
            .args(["-p", "/"])
            .args(python.folders.iter().filter(|folder| folder.is_dir()));
        self.tools.run_well("Python's modules cannot be compiled", &mut command).await?;
        self.finish(recipe, BuildStep::Bytecode, begun);
        Ok(())
    }

    /// Writes the file system that a microVM mounts.
    pub(super) async fn squash(
        &mut self,
        recipe: &Recipe,
        tree: &Path,
        out: &Path,
    ) -> Result<(), SandboxError> {
        let begun = self.start(recipe, BuildStep::Squash);
        let mut command = self.tools.command(self.tools.find("mksquashfs")?);
        command
            .arg(tree)
            .arg(out)
            // Level 6 takes a second where the default of 15 takes fifty, for a tenth of the size.
            .args(["-comp", "zstd", "-Xcompression-level", "6", "-b", "131072"])
            .args(["-all-root", "-no-xattrs", "-noappend", "-mkfs-time", "0", "-all-time", "0"])
            .args(["-quiet", "-no-progress"]);
        self.tools.run_well("the root file system cannot be written", &mut command).await?;
        self.finish(recipe, BuildStep::Squash, begun);
        Ok(())
    }
}

struct Interpreter {
    program: PathBuf,
    /// Where modules are.
    folders: [PathBuf; 2],
}

/// The Python of a root, found by its library `usr/lib/python3.N`.
fn interpreter(tree: &Path) -> Option<Interpreter> {
    let entries = fs_err::read_dir(tree.join("usr/lib")).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut versions: Vec<_> = names.filter(|name| name.starts_with("python3.")).collect();
    versions.sort();
    let name = versions.pop()?;
    let program = tree.join("usr/bin").join(&name);
    let folders = [tree.join("usr/lib").join(name), tree.join(DIST_PACKAGES)];
    program.is_file().then_some(Interpreter { program, folders })
}

fn change(tree: &Path, recipe: &RootRecipe) -> io::Result<()> {
    for path in &recipe.remove {
        remove(&tree.join(path))?;
    }
    // Who made a package and under which licence goes with it; the rest of its papers does not.
    let papers = tree.join("usr/share/doc");
    if papers.is_dir() {
        let mut surplus = Vec::new();
        tree::walk(&papers, "", 0, &mut |path, relative| {
            if !relative.ends_with("/copyright") && !path.symlink_metadata()?.is_dir() {
                surplus.push(path.to_owned());
            }
            Ok(())
        })?;
        surplus.iter().try_for_each(|path| remove(path))?;
        remove_empty(&papers)?;
    }
    let modules = tree.join(DIST_PACKAGES);
    if modules.is_dir() {
        tree::remove_folders_named(&modules, &|name| recipe.remove_folders_named.contains(name))?;
    }
    for path in &recipe.folders {
        // What a package or the builder put into a mount point would never be seen.
        remove(&tree.join(path))?;
        fs_err::create_dir_all(tree.join(path))?;
    }
    for (path, text) in &recipe.files {
        let path = made_way(tree, path)?;
        fs_err::write(path, text)?;
    }
    for (path, target) in &recipe.links {
        let path = made_way(tree, path)?;
        fs_err::os::unix::fs::symlink(target, path)?;
    }
    Ok(())
}

/// A path below the tree where nothing is yet and whose folder is there.
fn made_way(tree: &Path, path: &str) -> io::Result<PathBuf> {
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
    // Inner folders come before outer ones.
    for folder in folders {
        if fs_err::read_dir(&folder)?.next().is_none() {
            fs_err::remove_dir(&folder)?;
        }
    }
    Ok(())
}

/// The names that `import` finds in a folder of packages: modules, extensions, and folders that hold
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
