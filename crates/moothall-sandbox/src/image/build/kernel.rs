//! The kernel and driver modules of an image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::initramfs::{ArchiveEntry, archive};
use super::super::manifest::DebianPackage;
use super::super::recipe::{ImageRecipe, KernelRecipe};
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
    pub(crate) async fn kernel(
        &mut self,
        recipe: &ImageRecipe,
    ) -> Result<KernelFiles, SandboxError> {
        let key = (recipe.suite.clone(), recipe.kernel.clone());
        if let Some(kernel) = self.kernel.as_ref().filter(|kernel| kernel.recipe == key) {
            return Ok(kernel.clone());
        }
        let started = self.start(recipe, BuildStep::Kernel);
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
            self.blocking(move |_| extract_kernel(&area, &packages, key).map_err(broken)).await?;
        self.finish(recipe, BuildStep::Kernel, started);
        self.kernel = Some(kernel.clone());
        Ok(kernel)
    }
}

/// Copies the required files out of the unpacked packages and deletes the rest.
fn extract_kernel(
    area: &Path,
    packages: &[DebianPackage],
    recipe: (String, KernelRecipe),
) -> Result<KernelFiles, String> {
    let to_message = |error: std::io::Error| error.to_string();
    let unpacked = area.join("unpacked");
    let mut kernels = Vec::new();
    for entry in fs_err::read_dir(unpacked.join("boot")).map_err(to_message)? {
        let name = entry.map_err(to_message)?.file_name();
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
        .map_err(to_message)?;
    fs_err::write(&kernel.modules, modules).map_err(to_message)?;
    fs_err::remove_dir_all(&unpacked).map_err(to_message)?;
    Ok(kernel)
}

/// The first part of the initramfs: mount points, modules, and `/modules/order`, which lists them.
fn modules(folder: &Path, recipe: &KernelRecipe) -> Result<Vec<u8>, String> {
    let to_message = |error: std::io::Error| error.to_string();
    let mut found = BTreeMap::new();
    walk(folder, "", 0, &mut |path, relative| {
        let name = relative.rsplit('/').next().unwrap_or(relative);
        if let Some(name) = name.strip_suffix(".ko") {
            found.insert(module_name(name), path.to_owned());
        }
        Ok(())
    })
    .map_err(to_message)?;
    let built_in = fs_err::read_to_string(folder.join("modules.builtin")).map_err(to_message)?;
    let files = built_in.lines().filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko"));
    let built_in: BTreeSet<String> = files.map(module_name).collect();
    let mut order = LoadOrder {
        found: &found,
        built_in: &built_in,
        seen: BTreeSet::new(),
        modules: Vec::new(),
    };
    for name in &recipe.modules {
        order.add(&module_name(name))?;
    }
    let names: String =
        order.modules.iter().map(|module| format!("{}.ko\n", module.name)).collect();
    let mut entries: Vec<_> =
        recipe.folders.iter().map(|path| ArchiveEntry::Folder(path)).collect();
    entries.push(ArchiveEntry::Folder("modules"));
    entries.push(ArchiveEntry::File {
        path: "modules/order",
        mode: 0o644,
        bytes: names.as_bytes(),
    });
    entries.extend(order.modules.iter().map(|module| ArchiveEntry::File {
        path: &module.path,
        mode: 0o644,
        bytes: &module.bytes,
    }));
    archive(&entries).map_err(|error| error.to_string())
}

/// File names and dependency lists spell the same module with `-` or `_`.
fn module_name(spelled: &str) -> String {
    spelled.replace('-', "_")
}

/// Modules in the order in which they must be loaded. Dependencies are read from the modules,
/// because they change between kernel updates and `modules.dep` is only written on installation.
struct LoadOrder<'a> {
    found: &'a BTreeMap<String, PathBuf>,
    built_in: &'a BTreeSet<String>,
    seen: BTreeSet<String>,
    modules: Vec<KernelModule>,
}

struct KernelModule {
    name: String,
    /// In the archive.
    path: String,
    bytes: Vec<u8>,
}

impl LoadOrder<'_> {
    fn add(&mut self, name: &str) -> Result<(), String> {
        if self.built_in.contains(name) || !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let path =
            self.found.get(name).ok_or_else(|| format!("the kernel has no module `{name}`"))?;
        let bytes = fs_err::read(path).map_err(|error| error.to_string())?;
        for dependency in dependencies(&bytes) {
            self.add(&dependency)?;
        }
        let path = format!("modules/{name}.ko");
        self.modules.push(KernelModule { name: name.to_owned(), path, bytes });
        Ok(())
    }
}

/// The modules that a module depends on, from the entry `depends=a,b` among its properties, which
/// are strings that end with a zero byte.
fn dependencies(module: &[u8]) -> Vec<String> {
    let properties = module.split(|byte| *byte == 0);
    let mut lists = properties.filter_map(|text| text.strip_prefix(b"depends="));
    let list = lists.next().and_then(|list| std::str::from_utf8(list).ok()).unwrap_or_default();
    list.split(',').filter(|name| !name.is_empty()).map(module_name).collect()
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
