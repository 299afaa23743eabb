//! Any text is either rejected or a path that stays below its root and parses to itself again.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use moothall_core::drafts::{DraftId, RelPath, TaskId};

fuzz_target!(|text: &str| {
    if let Ok(path) = RelPath::parse(text) {
        assert_eq!(path.as_str(), text);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        assert!(Path::new(text).components().all(plain));
        assert!(!text.to_lowercase().split('/').any(|name| name == ".git" || name == ".moothall"));
        assert!(!text.contains(['\0', '\n', '\\', ':']));
        let (folder, name) = path.split();
        assert!(!name.is_empty() && !folder.starts_with('/'));
    }
    if let Some(id) = DraftId::parse(text) {
        assert_eq!(id.to_string(), text);
    }
    if let Some(task) = TaskId::parse(text) {
        assert!(!task.as_str().contains('/'));
    }
});
