//! Path patterns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::drafts::RelPath;

/// A compiled list of path patterns.
#[derive(Debug, Clone)]
pub(crate) struct PathGlobs {
    texts: Vec<String>,
    set: Option<GlobSet>,
}

impl PathGlobs {
    /// Matches every path. Fallback for built-in patterns that do not compile, which tests would
    /// catch: denying or protecting too much is safe.
    fn match_all() -> Self {
        Self { texts: vec!["**".to_owned()], set: None }
    }

    pub(crate) fn built_in(texts: &[&str]) -> Self {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        Self::new(texts).unwrap_or_else(|_| Self::match_all())
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    pub(crate) fn new(texts: Vec<String>) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for text in &texts {
            // Some file systems fold case, and a rule must apply on all of them.
            let glob = GlobBuilder::new(text)
                .literal_separator(true)
                .case_insensitive(true)
                .empty_alternates(true)
                .build();
            set.add(glob.map_err(|error| format!("invalid pattern `{text}`: {}", error.kind()))?);
        }
        let set = set.build().map_err(|error| format!("invalid patterns: {}", error.kind()))?;
        Ok(Self { texts, set: Some(set) })
    }

    pub(crate) fn and(&self, more: Vec<String>) -> Result<Self, String> {
        Self::new(self.texts.iter().cloned().chain(more).collect())
    }

    pub(crate) fn has(&self, path: &RelPath) -> bool {
        let Some(set) = &self.set else { return true };
        set.is_match(path.as_str()) || set.is_match(path.folded())
    }

    pub(crate) fn matching(&self, path: &RelPath) -> Vec<&str> {
        match &self.set {
            Some(set) => {
                let mut found = set.matches(path.as_str());
                found.extend(set.matches(path.folded()));
                found.sort_unstable();
                found.dedup();
                found.into_iter().map(|at| self.texts[at].as_str()).collect()
            }
            None => self.texts.iter().map(String::as_str).collect(),
        }
    }
}
