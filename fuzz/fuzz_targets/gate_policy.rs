//! Any text is refused as a policy, or is one that is no looser than the floor; and a layer below
//! another never loosens it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moothall_core::drafts::RelPath;
use moothall_core::gate::{Layer, LayerName, Policy, Rule};

/// What parts the input into layers.
const PART: char = '\u{1e}';

fuzz_target!(|text: &str| {
    let (above, below) = text.split_once(PART).unwrap_or((text, ""));
    let layer = |name, text: &str| Layer::new(name, text);
    let Ok(alone) = Policy::of(&[layer(LayerName::Organisation, above)]) else { return };
    for rule in Rule::ALL {
        assert!(alone.rule(*rule) >= rule.floor());
    }
    let layers = [layer(LayerName::Organisation, above), layer(LayerName::Workspace, below)];
    let Ok(both) = Policy::of(&layers) else { return };
    for rule in Rule::ALL {
        assert!(both.rule(*rule) >= alone.rule(*rule));
    }
    assert!(both.limits.max_changed_lines <= alone.limits.max_changed_lines);
    assert!(both.limits.max_file_bytes <= alone.limits.max_file_bytes);
    for name in ["src/a.py", ".github/x", "_handoff/x", "a"] {
        if let Ok(path) = RelPath::parse(name) {
            assert!(both.denies(&path) >= alone.denies(&path));
        }
    }
});
