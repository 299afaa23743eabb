//! Any text is either rejected or a path that stays below its root and parses to itself again.

use std::path::{Component, Path};

use moothall_core::drafts::{DraftId, RelPath, TaskId};

pub fn draft_paths(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
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
}
