//! The kernel and driver modules of an image.

use std::path::{Path, PathBuf};

use super::super::initramfs::{ArchiveEntry, archive};
use super::super::manifest::DebianPackage;
use super::super::recipe::{KernelRecipe, Recipe};
use super::super::tree::walk;
use super::packages::PackageSelection;
use super::{BuildStep, ImageBuilder};
use crate::SandboxError;

/// A downloaded kernel.
#[derive(Debug, Clone)]
pub(crate) struct KernelFiles {
    /// The suite and recipe it was built from.
    recipe: (String, KernelRecipe),
    pub(crate) package: DebianPackage,
    pub(crate) release: String,
    pub(crate) vmlinuz: PathBuf,
    pub(crate) modules: PathBuf,
}

impl ImageBuilder<'_> {
    /// The kernel for a recipe. Recipes with the same kernel share one download.
    pub(crate) async fn kernel(&mut self, recipe: &Recipe) -> Result<KernelFiles, SandboxError> {
        let wanted = (recipe.suite.clone(), recipe.kernel.clone());
        if let Some(kernel) = self.kernel.as_ref().filter(|kernel| kernel.recipe == wanted) {
            return Ok(kernel.clone());
        }
        let begun = self.start(recipe, BuildStep::Kernel);
        let area = self.work.path().join(format!("kernel-{}", self.drafts));
        let unpacked = area.join("unpacked");
        let packages = [recipe.kernel.package.clone()].into();
        let wanted_packages =
            PackageSelection { packages: &packages, without: &recipe.kernel.without };
        let packages = self.unpack(recipe, &area, &unpacked, wanted_packages).await?;
        let broken = {
            let image = recipe.name.clone();
            move |problem: String| SandboxError::Image { image, problem }
        };
        let kernel =
            self.blocking(move |_| take_out(&area, &packages, wanted).map_err(broken)).await?;
        self.finish(recipe, BuildStep::Kernel, begun);
        self.kernel = Some(kernel.clone());
        Ok(kernel)
    }
}

/// Copies the required files out of the unpacked packages and deletes the rest.
fn take_out(
    area: &Path,
    packages: &[DebianPackage],
    recipe: (String, KernelRecipe),
) -> Result<KernelFiles, String> {
    let words = |error: std::io::Error| error.to_string();
    let unpacked = area.join("unpacked");
    let mut kernels = Vec::new();
    for entry in fs_err::read_dir(unpacked.join("boot")).map_err(words)? {
        let name = entry.map_err(words)?.file_name();
        kernels.extend(name.to_str().and_then(|it| it.strip_prefix("vmlinuz-")).map(str::to_owned));
    }
    let [release] = kernels.as_slice() else {
        return Err(format!(
            "package `{}` contains {} kernels, expected one",
            recipe.1.package,
            kernels.len()
        ));
    };
    let of_release = format!("linux-image-{release}");
    let package = packages.iter().find(|package| package.name == of_release);
    let package = package.ok_or_else(|| format!("package `{of_release}` is missing"))?.clone();

    let modules = modules(&unpacked.join("lib/modules").join(release), &recipe.1)?;
    let kernel = KernelFiles {
        recipe,
        package,
        release: release.clone(),
        vmlinuz: area.join("vmlinuz"),
        modules: area.join("modules.cpio"),
    };
    fs_err::copy(unpacked.join("boot").join(format!("vmlinuz-{release}")), &kernel.vmlinuz)
        .map_err(words)?;
    fs_err::write(&kernel.modules, modules).map_err(words)?;
    fs_err::remove_dir_all(&unpacked).map_err(words)?;
    Ok(kernel)
}

/// The first part of the initramfs: mount points, modules, and `/modules/order`, which lists them.
fn modules(folder: &Path, recipe: &KernelRecipe) -> Result<Vec<u8>, String> {
    let words = |error: std::io::Error| error.to_string();
    let mut found = Vec::new();
    walk(folder, "", 0, &mut |path, relative| {
        let name = relative.rsplit('/').next().unwrap_or(relative);
        if let Some(name) = name.strip_suffix(".ko") {
            found.push((name.to_owned(), path.to_owned()));
        }
        Ok(())
    })
    .map_err(words)?;
    let built_in = fs_err::read_to_string(folder.join("modules.builtin")).map_err(words)?;
    let is_built_in = |name: &str| {
        let file = format!("{name}.ko");
        built_in.lines().any(|line| line.rsplit('/').next() == Some(&file))
    };
    let mut files = Vec::new();
    let mut order = String::new();
    for name in &recipe.modules {
        match found.iter().find(|(own, _)| own == name) {
            Some((_, path)) => {
                order.push_str(name);
                order.push_str(".ko\n");
                files.push((format!("modules/{name}.ko"), fs_err::read(path).map_err(words)?));
            }
            None if is_built_in(name) => {}
            None => return Err(format!("the kernel has no module `{name}`")),
        }
    }
    let mut entries: Vec<_> =
        recipe.folders.iter().map(|path| ArchiveEntry::Folder(path)).collect();
    entries.push(ArchiveEntry::Folder("modules"));
    entries.push(ArchiveEntry::File {
        path: "modules/order",
        mode: 0o644,
        bytes: order.as_bytes(),
    });
    entries.extend(files.iter().map(|(path, bytes)| ArchiveEntry::File {
        path,
        mode: 0o644,
        bytes,
    }));
    archive(&entries).map_err(|error| error.to_string())
}
