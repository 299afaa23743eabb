//! Any answer is either parsed or rejected, judging any file and draft is deterministic, and
//! applying the diff that the gate prints yields the draft.

use std::sync::LazyLock;

use moothall_core::drafts::{FileProposal, RelPath, apply_hunks, read_answer};
use moothall_core::gate::{
    CheckResults, FileChange, FileContent, FileContext, FingerprintKey, Policy, PolicyDate, judge,
    merge, unified,
};

const PART: u8 = 0x1e;

static POLICY: LazyLock<Policy> = LazyLock::new(Policy::built_in);

pub fn gate_patches(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == PART);
    let (base, draft) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    let Ok(path) = RelPath::parse("src/a.py") else { return };
    let content = |bytes| FileContent { bytes, executable: false };
    let change = FileChange {
        path: &path,
        rename_to: None,
        base: Some(content(base)),
        draft: Some(content(draft)),
        around: FileContext::default(),
    };
    let key = FingerprintKey::new([1; 32]);
    let today = PolicyDate { year: 2026, month: 1, day: 1 };
    let verdict = judge(&POLICY, &[change], &CheckResults::default(), &key, today);
    assert_eq!(verdict, judge(&POLICY, &[change], &CheckResults::default(), &key, today));
    let (Ok(base), Ok(draft)) = (std::str::from_utf8(base), std::str::from_utf8(draft)) else {
        return;
    };
    let _ = merge(base, draft, "a\nb\n");
    if let Ok(read) = read_answer(draft, Some(&path)) {
        for one in read {
            if let FileProposal::Hunks(hunks) = one.what {
                let _ = apply_hunks(base, &hunks);
            }
        }
    }
    // Skips lone carriage returns: a diff treats them as line ends, the gate does not.
    if base != draft && !base.contains('\r') && !draft.contains('\r') {
        let printed = unified("src/a.py", base, draft);
        if let Ok(read) = read_answer(&printed, None)
            && let [one] = read.as_slice()
            && let FileProposal::Hunks(hunks) = &one.what
        {
            assert_eq!(apply_hunks(base, hunks).as_deref(), Ok(draft));
        }
    }
}
