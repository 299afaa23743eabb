//! Image recipes. They are files of this repository, compiled into the program.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};

use crate::SandboxError;

const BASE: &str = include_str!("../../../../images/base.toml");

/// In default build order, fastest first.
const BUILT_IN: [(&str, &str); 4] = [
    ("debate", include_str!("../../../../images/debate.toml")),
    ("python", include_str!("../../../../images/python.toml")),
    ("documents", include_str!("../../../../images/documents.toml")),
    ("data", include_str!("../../../../images/data.toml")),
];

/// Part of the recipe hash. Increment it when the builder produces a different image from the same
/// recipe.
const BUILDER: u32 = 1;

/// Describes how an image is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecipe {
    pub name: String,
    /// Short description of what the image is for.
    pub summary: String,
    /// Debian release of the packages.
    pub suite: String,
    pub kernel: KernelRecipe,
    /// Root file system. `None` if only the agent runs.
    pub root: Option<RootRecipe>,
}

/// Kernel and initramfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecipe {
    /// Debian package; may be a metapackage for the newest kernel.
    pub package: String,
    /// Dependencies to leave out.
    pub without: BTreeSet<String>,
    /// Modules to load, without their dependencies.
    pub modules: Vec<String>,
    /// Mount points in the initramfs.
    pub folders: BTreeSet<String>,
}

/// A root file system. All paths are relative to its root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RootRecipe {
    /// Debian packages. Their dependencies are included.
    pub packages: BTreeSet<String>,
    /// Dependencies to leave out.
    pub without: BTreeSet<String>,
    /// Empty folders to create.
    pub folders: BTreeSet<String>,
    /// Files and folders to remove.
    pub remove: BTreeSet<String>,
    /// Folder names to remove anywhere inside Python packages.
    pub remove_folders_named: BTreeSet<String>,
    /// Symbolic links and their targets.
    pub links: BTreeMap<String, String>,
    /// Files and their content.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaseRecipe {
    suite: String,
    kernel: KernelRecipe,
    root: RootRecipe,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageRecipeFile {
    name: String,
    summary: String,
    root: Option<RootRecipe>,
}

impl ImageRecipe {
    /// Names of the images that can be built.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the built-in recipe with this name.
    pub fn named(name: &str) -> Result<Self, SandboxError> {
        let text = BUILT_IN.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
        let text = text.ok_or_else(|| {
            let known: Vec<_> = Self::names().collect();
            SandboxError::Image {
                image: name.to_owned(),
                problem: format!("unknown image; available images: {}", known.join(", ")),
            }
        })?;
        Self::parse(BASE, text)
            .map_err(|problem| SandboxError::Image { image: name.to_owned(), problem })
    }

    /// Parses a recipe and merges it with the base recipe.
    fn parse(base: &str, own: &str) -> Result<Self, String> {
        let base: BaseRecipe = toml::from_str(base).map_err(|error| error.to_string())?;
        let own: ImageRecipeFile = toml::from_str(own).map_err(|error| error.to_string())?;
        if !is_name(&own.name) {
            return Err(
                "an image name may contain only lower-case letters, digits and `-`".to_owned()
            );
        }
        let root = own.root.map(|own| base.root.joined(own));
        let recipe = Self {
            name: own.name,
            summary: own.summary,
            suite: base.suite,
            kernel: base.kernel,
            root,
        };
        recipe.check()?;
        Ok(recipe)
    }

    /// Hash of everything that affects the image except package versions.
    pub fn hash(&self) -> Result<Sha256Hex, SandboxError> {
        let Self { name, summary: _, suite, kernel, root } = self;
        canonical_json(&serde_json::json!({
            "builder": BUILDER,
            "name": name,
            "suite": suite,
            "kernel": kernel,
            "root": root,
        }))
        .map(|text| Sha256Hex::of(text.as_bytes()))
        .map_err(|error| SandboxError::Image { image: name.clone(), problem: error.to_string() })
    }

    /// Checks values that become program arguments or paths.
    fn check(&self) -> Result<(), String> {
        let root = self.root.clone().unwrap_or_default();
        let words = [&self.suite, &self.kernel.package]
            .into_iter()
            .chain(&self.kernel.without)
            .chain(&self.kernel.modules)
            .chain(&root.packages)
            .chain(&root.without)
            .chain(&root.remove_folders_named);
        for word in words {
            if !is_word(word) {
                return Err(format!("`{word}` is not a valid package, module or folder name"));
            }
        }
        let paths = (self.kernel.folders.iter())
            .chain(&root.folders)
            .chain(&root.remove)
            .chain(root.links.keys())
            .chain(root.files.keys());
        for path in paths {
            if !path.split('/').all(is_word) {
                return Err(format!("`{path}` is not a valid path inside the root"));
            }
        }
        Ok(())
    }
}

impl RootRecipe {
    fn joined(mut self, own: Self) -> Self {
        self.packages.extend(own.packages);
        self.without.extend(own.without);
        self.folders.extend(own.folders);
        self.remove.extend(own.remove);
        self.remove_folders_named.extend(own.remove_folders_named);
        self.links.extend(own.links);
        self.files.extend(own.files);
        self
    }
}

/// Whether `text` is a valid image name, and so a safe file name.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('-')
}

fn is_word(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    !text.is_empty()
        && text.bytes().all(fits)
        && text.bytes().any(|byte| byte != b'.')
        && !text.starts_with('-')
}

#[cfg(test)]
#[path = "recipe_tests.rs"]
mod tests;
