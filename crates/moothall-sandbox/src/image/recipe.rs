//! Recipes: what an image is made of. They are files of the repository, compiled in.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::{Sha256Hex, canonical_json};
use serde::{Deserialize, Serialize};

use crate::SandboxError;

const BASE: &str = include_str!("../../../../images/base.toml");

/// In the order in which they are built when nobody names one: the quickest first.
const BUILT_IN: [(&str, &str); 4] = [
    ("debate", include_str!("../../../../images/debate.toml")),
    ("python", include_str!("../../../../images/python.toml")),
    ("documents", include_str!("../../../../images/documents.toml")),
    ("data", include_str!("../../../../images/data.toml")),
];

/// Part of a recipe's hash: raised when the builder makes something else of the same recipe.
const BUILDER: u32 = 1;

/// What an image is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The image's name.
    pub name: String,
    /// What it is good for, in a few words.
    pub summary: String,
    /// The Debian release that its packages come from.
    pub suite: String,
    /// Its kernel.
    pub kernel: KernelRecipe,
    /// Its root file system; none where the agent is all that runs.
    pub root: Option<RootRecipe>,
}

/// Kernel and initramfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecipe {
    /// The Debian package; one that depends on the newest kernel will do.
    pub package: String,
    /// Packages that stay out, although it depends on them.
    pub without: BTreeSet<String>,
    /// Modules in the order in which they are loaded.
    pub modules: Vec<String>,
    /// Mount points in the initramfs.
    pub folders: BTreeSet<String>,
}

/// A root file system. All paths are relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RootRecipe {
    /// Debian packages; what they depend on comes along.
    pub packages: BTreeSet<String>,
    /// Packages that stay out, although others depend on them.
    pub without: BTreeSet<String>,
    /// Empty folders.
    pub folders: BTreeSet<String>,
    /// Files and folders to remove.
    pub remove: BTreeSet<String>,
    /// Folders to remove wherever packages of Python have them.
    pub remove_folders_named: BTreeSet<String>,
    /// Symbolic links and where they point.
    pub links: BTreeMap<String, String>,
    /// Files with their text.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Base {
    suite: String,
    kernel: KernelRecipe,
    root: RootRecipe,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    name: String,
    summary: String,
    root: Option<RootRecipe>,
}

impl Recipe {
    /// The names of the images that can be built.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The recipe of that name.
    pub fn named(name: &str) -> Result<Self, SandboxError> {
        let text = BUILT_IN.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
        let text = text.ok_or_else(|| {
            let known: Vec<_> = Self::names().collect();
            SandboxError::Image {
                image: name.to_owned(),
                problem: format!("there is no recipe of that name; there are {}", known.join(", ")),
            }
        })?;
        Self::parse(BASE, text)
            .map_err(|problem| SandboxError::Image { image: name.to_owned(), problem })
    }

    /// Reads a recipe on top of what every image shares, or says what is wrong with it.
    fn parse(base: &str, own: &str) -> Result<Self, String> {
        let base: Base = toml::from_str(base).map_err(|error| error.to_string())?;
        let own: Own = toml::from_str(own).map_err(|error| error.to_string())?;
        if !is_name(&own.name) {
            return Err("a name has lower-case letters, digits and `-`".to_owned());
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

    /// The hash of everything that makes a difference to the image, apart from the versions of the
    /// packages.
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

    /// Words that become arguments of programs and paths below a folder must be harmless as such.
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
                return Err(format!("`{word}` is not the name of a package, module or folder"));
            }
        }
        let paths = (self.kernel.folders.iter())
            .chain(&root.folders)
            .chain(&root.remove)
            .chain(root.links.keys())
            .chain(root.files.keys());
        for path in paths {
            if !path.split('/').all(is_word) {
                return Err(format!("`{path}` is not a path below the root"));
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

/// Whether this can be an image's name, and so a file's.
pub(super) fn is_name(text: &str) -> bool {
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
