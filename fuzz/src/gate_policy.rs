//! Any text is either rejected as a policy or at least as strict as the floor, and a lower layer
//! never loosens a higher one.

use moothall_core::drafts::RelPath;
use moothall_core::gate::{GateRule, Policy, PolicyLayer, PolicyLayerName};

/// Separates the layers of the input.
const PART: char = '\u{1e}';

pub fn gate_policy(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (above, below) = text.split_once(PART).unwrap_or((text, ""));
    let layer = |name, text: &str| PolicyLayer::new(name, text);
    let Ok(alone) = Policy::of(&[layer(PolicyLayerName::Organisation, above)]) else { return };
    for rule in GateRule::ALL {
        assert!(alone.rule(*rule) >= rule.floor());
    }
    let layers =
        [layer(PolicyLayerName::Organisation, above), layer(PolicyLayerName::Workspace, below)];
    let Ok(both) = Policy::of(&layers) else { return };
    for rule in GateRule::ALL {
        assert!(both.rule(*rule) >= alone.rule(*rule));
    }
    assert!(both.limits.max_changed_lines <= alone.limits.max_changed_lines);
    assert!(both.limits.max_file_bytes <= alone.limits.max_file_bytes);
    for name in ["src/a.py", ".github/x", "_handoff/x", "a"] {
        if let Ok(path) = RelPath::parse(name) {
            assert!(both.denies(&path) >= alone.denies(&path));
        }
    }
}
