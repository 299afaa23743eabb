//! Runs the gate on real code: sources of published crates in cargo's registry. The set depends on
//! the machine; every build of this workspace leaves hundreds. `--nocapture` prints the figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moothall_gate::drafts::RelPath;
use moothall_gate::gate::{
    CheckResults, FileChange, FileContent, FileContext, FingerprintKey, GateAction, Policy,
    PolicyDate, judge, scan_secrets,
};
use moothall_types::Sha256Hex;

const TODAY: PolicyDate = PolicyDate { year: 2026, month: 11, day: 15 };
const FILES: usize = 4_000;
const PAIRS: usize = 40;
const FILES_OF_A_PAIR: usize = 5;

/// Crate directories such as `regex-1.13.1`, sorted.
fn crates() -> Vec<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "a test looks where cargo keeps its sources")]
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")?.join(".cargo"))).unwrap();
    let mut found = Vec::new();
    for registry in fs_err::read_dir(home.join("registry/src")).unwrap() {
        let entries = fs_err::read_dir(registry.unwrap().path()).unwrap();
        found.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// Source files below a directory, by relative path.
fn sources(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(folder: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        let Ok(entries) = fs_err::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            let Ok(kind) = entry.file_type() else { continue };
            let wanted = [".rs", ".py", ".js", ".ts", ".c", ".h", ".sh", ".md", ".toml", ".yml"];
            if kind.is_dir() {
                walk(&entry.path(), &format!("{name}/"), found);
            } else if kind.is_file()
                && wanted.iter().any(|end| name.ends_with(end))
                && let Ok(bytes) = fs_err::read(entry.path())
                && (1..=100_000).contains(&bytes.len())
            {
                found.insert(name, bytes);
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, "", &mut found);
    found
}

fn key() -> FingerprintKey {
    FingerprintKey::new([3; 32])
}

#[test]
fn human_written_sources_rarely_trigger_the_credential_scan() {
    let crates = crates();
    let each = FILES.div_ceil(crates.len().max(1)) * 3;
    let (mut files, mut bytes) = (0, 0);
    let mut alarms = Vec::new();
    'crates: for folder in &crates {
        for (name, content) in sources(folder).into_iter().take(each) {
            if files == FILES {
                break 'crates;
            }
            files += 1;
            bytes += content.len();
            if let Some(secret) = scan_secrets(&content, &key()).secrets.first() {
                let place = folder.file_name().unwrap().to_string_lossy();
                alarms.push(format!("{place}/{name}:{} {}", secret.line, secret.kind));
            }
        }
    }
    println!("{} of {files} files ({bytes} bytes) raise an alarm: {alarms:#?}", alarms.len());
    assert!(files >= 4_000, "{files} files are too few; build the workspace first");
    assert!(alarms.len() * 1000 <= files * 3, "{alarms:#?}");
}

/// Two adjacent versions of one crate.
fn pairs() -> Vec<(PathBuf, PathBuf)> {
    let crates = crates();
    let name = |path: &Path| {
        let whole = path.file_name().unwrap().to_string_lossy().into_owned();
        let end = whole.find("-0.").or_else(|| {
            whole
                .char_indices()
                .zip(whole.chars().skip(1))
                .find_map(|((at, c), next)| (c == '-' && next.is_ascii_digit()).then_some(at))
        });
        whole[..end.unwrap_or(whole.len())].to_owned()
    };
    let beside = crates.windows(2).filter(|two| name(&two[0]) == name(&two[1]));
    beside.map(|two| (two[0].clone(), two[1].clone())).take(PAIRS).collect()
}

fn verdict(path: &RelPath, base: &[u8], draft: &[u8]) -> GateAction {
    let content = |bytes| FileContent { bytes, executable: false };
    let change = FileChange {
        path,
        rename_to: None,
        base: Some(content(base)),
        draft: Some(content(draft)),
        around: FileContext::default(),
    };
    judge(&Policy::built_in(), &[change], &CheckResults::default(), &key(), TODAY).action
}

#[test]
fn human_edits_are_rarely_rejected_and_their_bad_mutants_are_caught() {
    let pairs = pairs();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut mutants, mut missed) = (0, Vec::new());
    let token = format!("ghp_{}", &Sha256Hex::of(b"of nobody").to_string()[..36]);
    for (before, after) in &pairs {
        let (old, new) = (sources(before), sources(after));
        let changed = old.iter().filter_map(|(name, base)| {
            let draft = new.get(name).filter(|draft| *draft != base)?;
            let path = name.ends_with(".rs").then(|| RelPath::parse(name).ok())??;
            Some((path, base, draft))
        });
        for (path, base, draft) in changed.take(FILES_OF_A_PAIR) {
            let action = verdict(&path, base, draft);
            *counts.entry(action.as_str()).or_default() += 1;
            *counts.entry("all").or_default() += 1;
            let text = String::from_utf8_lossy(draft);
            let lines: Vec<&str> = text.lines().collect();
            if lines.len() < 30 {
                continue;
            }
            let third = lines[..lines.len() / 3].join("\n");
            let comments: String = lines.iter().map(|line| format!("// {line}\n")).collect();
            let bad = [
                ("cut", format!("{third}\n")),
                ("placeholder", format!("{third}\n// ... rest of the code unchanged ...\n")),
                ("comments", comments),
                ("secret", format!("{text}\nconst KEY: &str = \"{token}\";\n")),
            ];
            for (kind, mutant) in bad {
                mutants += 1;
                if verdict(&path, base, mutant.as_bytes()) < GateAction::Escalate {
                    missed.push(format!("{kind} of {path} in {}", before.display()));
                }
            }
        }
    }
    println!("{} pairs of versions, verdicts {counts:?}", pairs.len());
    println!("{} of {mutants} bad twins are missed: {missed:#?}", missed.len());
    let count = |word| counts.get(word).copied().unwrap_or(0);
    assert!(pairs.len() >= 30 && count("all") >= 100, "{} pairs, {counts:?}", pairs.len());
    assert!(count("reject") * 20 < count("all"), "{counts:?}");
    assert!(missed.len() * 100 <= mutants, "{missed:#?}");
}
