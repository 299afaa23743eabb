//! Rules about code: machine-specific paths, stubs, placeholders and calls that run programs.

use std::sync::LazyLock;

use regex::Regex;

use super::policy::Policy;
use super::rule::GateRule;
use super::{FileChange, FileComparison, RuleMatch};

pub(crate) fn check(
    policy: &Policy,
    change: &FileChange<'_>,
    compared: &FileComparison,
) -> Vec<RuleMatch> {
    let mut seen = Vec::new();
    seen.extend(machine_paths(compared));
    seen.extend(placeholder(compared));
    seen.extend(exec_sink(compared));
    seen.extend(shebang(change));
    seen.extend(manifest(change));
    seen.extend(check_gutted(policy, change, compared));
    seen
}

/// Checks whether code was replaced by stubs or deleted.
pub(crate) fn check_gutted(
    policy: &Policy,
    change: &FileChange<'_>,
    compared: &FileComparison,
) -> Option<RuleMatch> {
    let (base, draft) = (change.base?, change.draft?);
    let (base, draft) = (String::from_utf8_lossy(base.bytes), String::from_utf8_lossy(draft.bytes));
    gutted(policy, change, compared, &base, &draft)
}

/// `None` (the pattern failed to compile) counts as a match, so that nothing passes unchecked.
type Pattern = LazyLock<Option<Regex>>;

macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: Pattern = LazyLock::new(|| Regex::new($text).ok());
    };
}

fn hits(pattern: &Pattern, line: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(line))
}

pattern!(
    HOME,
    r#"(?i)(?:^|[^\w./:~%-])(?:file://)?(?:/(?:home|Users)/[A-Za-z0-9_][\w.-]*(?:/|\b)|/r(?:oot)/\w|~[a-z_][\w.-]*/|[A-Z]:[\\/]{1,2}Users[\\/]{1,2}\w)"#
);
pattern!(SYSTEM, r#"(?:^|[^\w./:~%-])(?:/(?:etc|usr|var|opt|mnt|Volumes|proc|sys|dev)/\w|~/\w)"#);
pattern!(TMP, r#"(?:^|[^\w./:~%-])/(?:tmp|var/tmp|private/tmp)(?:/|\b)"#);

fn machine_paths(compared: &FileComparison) -> Vec<RuleMatch> {
    let first = |pattern: &'static Pattern| {
        compared.added.iter().find(|(_, line)| {
            // A shebang names an interpreter by its usual path.
            line.contains(['/', '\\']) && !line.starts_with("#!") && hits(pattern, line)
        })
    };
    let mut seen = Vec::new();
    for (pattern, rule, words) in [
        (&HOME, GateRule::PathHome, "path in a user's home directory"),
        (&TMP, GateRule::PathTmp, "path in a temporary directory"),
        (&SYSTEM, GateRule::PathSystem, "path in a system directory"),
    ] {
        if let Some((line, _)) = first(pattern) {
            seen.push(RuleMatch::new(rule, Some(*line), words));
        }
    }
    seen
}

pattern!(
    PLACEHOLDER,
    r#"(?ix)
    (?:\b(?:rest|remainder)\ of\ (?:the\ |this\ |your\ |my\ )?(?:\w+\ ){0,2}?(?:code|file|function|class|method|module|implementation|logic|content|contents|script|methods|functions|imports|document)\b
        .{0,40}?(?:unchanged|remain|same|here|as\ before|stays|omitted|goes|continues|\.\.\.|…))
    |(?:\b(?:existing|previous|original|remaining|other)\ (?:\w+\ ){0,2}?(?:code|implementation|functions?|methods?|logic|content|imports|lines|class|body)\b
        .{0,30}?(?:unchanged|remains?|here|as\ before|same|omitted|continues|goes\ here|stays?))
    |(?:\.\.\.|…)\s*(?:\(|\[)?\s*(?:the\ )?(?:rest|existing|remaining|previous|unchanged|same|omitted|other|more)\b.{0,60}?(?:code|unchanged|file|implementation|functions?|methods?|lines|content|same|as\ before|\.\.\.|…|\)|\])
    |\b(?:code|implementation|content|lines|body|section)\ (?:is\ |are\ |has\ been\ )?(?:omitted|elided|truncated|removed|left\ out|unchanged)\ (?:for\ brevity|here|above|below|from\ (?:the\ )?original)
    |\bomitted\ for\ brevity\b
    |\b(?:same|unchanged)\ as\ (?:before|above|the\ original|in\ the\ original|original)\b.{0,20}?(?:\.\.\.|…|$)
    |\b(?:keep|leave)\ (?:the\ )?(?:existing|rest|remaining|other)\b.{0,40}?(?:code|unchanged|as\ is|as-is|here|the\ same)
    |\b(?:add|insert|put|place)\ (?:your|the)\ (?:code|implementation|logic)\ here\b
    |^\W*(?:\.\.\.|…)\ ?\(?(?:unchanged|rest|existing|snip|same|omitted|truncated)\W*$
    |\[\s*(?:\.\.\.|…)?\s*(?:rest\ of|remaining|full|entire|existing|unchanged|full\ file|previous)\b[^\]]{0,60}\]\s*$
    "#
);

/// Whether a line looks like a comment or an ellipsis rather than code.
fn is_remark(line: &str) -> bool {
    let line = line.trim_start();
    const MARKS: &[&str] = &[
        "//", "#", "/*", "*", "--", "<!--", ";", "%", "{/*", "...", "…", "\"\"\"", "'''", "(*",
        "{-", "[", "REM ", "<",
    ];
    MARKS.iter().any(|mark| line.starts_with(mark))
}

fn placeholder(compared: &FileComparison) -> Option<RuleMatch> {
    let (line, _) = compared.added.iter().find(|(_, line)| {
        let trailing = line.split_once(" // ").or_else(|| line.split_once(" # "));
        let remark =
            if is_remark(line) { Some(line.as_str()) } else { trailing.map(|(_, rest)| rest) };
        remark.is_some_and(|remark| hits(&PLACEHOLDER, remark))
    })?;
    Some(RuleMatch::new(GateRule::ContentPlaceholder, Some(*line), "placeholder instead of code"))
}

pattern!(
    SINK,
    r#"(?x)
    \b(?:eval|exec|execfile|__import__|popen|system|execve?p?|spawnSync|execSync|shell_exec|passthru|proc_open|dlopen|LoadLibrary[AW]?)\s*\(
    |\bsubprocess\.|\bchild_process\b|\bRuntime\.getRuntime\b|\bProcessBuilder\b|\bos\.exec|\bexec\.Command\b
    |\bCommand::new\b|\bshell\s*=\s*True|\bpickle\.loads?\b|\byaml\.load\s*\(|\bmarshal\.loads\b|\bnew\s+Function\s*\(
    |\bdangerouslySetInnerHTML\b|\.innerHTML\s*=|\bInvoke-Expression\b|\bctypes\.|\bcurl\b[^|]*\|\s*(?:ba|z|da)?sh\b|\bbase64\s+-d\b[^|]*\|\s*(?:ba)?sh\b
    "#
);

fn exec_sink(compared: &FileComparison) -> Option<RuleMatch> {
    let (line, _) =
        compared.added.iter().find(|(_, line)| !is_remark(line) && hits(&SINK, line))?;
    Some(RuleMatch::new(
        GateRule::CodeExecSinkAdded,
        Some(*line),
        "runs a program or evaluates text as code",
    ))
}

fn shebang(change: &FileChange<'_>) -> Option<RuleMatch> {
    let has = |content: Option<super::FileContent<'_>>| {
        content.is_some_and(|content| content.bytes.starts_with(b"#!"))
    };
    (has(change.draft) && !has(change.base))
        .then(|| RuleMatch::new(GateRule::FileShebangAdded, Some(1), "shebang added"))
}

fn manifest(change: &FileChange<'_>) -> Option<RuleMatch> {
    const NAMES: &[&str] = &[
        "cargo.toml",
        "package.json",
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "pipfile",
        "go.mod",
        "gemfile",
        "pom.xml",
        "build.gradle",
        "build.gradle.kts",
        "composer.json",
        "package.swift",
        "mix.exs",
        "deno.json",
        "environment.yml",
        "flake.nix",
        "conanfile.txt",
        "vcpkg.json",
        ".npmrc",
        "nuget.config",
    ];
    let is = |name: &str| {
        let name = name.to_lowercase();
        NAMES.contains(&name.as_str())
            || (name.starts_with("requirements") && name.ends_with(".txt"))
            || name.ends_with(".csproj")
            || name.ends_with(".gemspec")
    };
    let named = is(change.path.name()) || change.rename_to.is_some_and(|path| is(path.name()));
    named.then(|| RuleMatch::new(GateRule::DepsManifestChanged, None, "dependency file changed"))
}

pattern!(
    STUB,
    r#"(?x)^\s*(?:pass|\.\.\.|return|return\ (?:None|null|nil|0|false|true|""|''|\{\}|\[\]|undefined);?|todo!\(.*\);?|unimplemented!\(.*\);?|unreachable!\(.*\);?
    |raise\ NotImplementedError.*|throw\ new\ (?:Error|NotImplementedException|UnsupportedOperationException)\(.*\);?|panic\(.*\);?|panic!\(.*\);?|Ok\(\(\)\)|None|Default::default\(\))\s*$"#
);
pattern!(
    TEST,
    r#"(?x)^\s*(?:\#\[(?:\w+::)*test\b|(?:async\ )?def\ test_|(?:it|test|describe)(?:\.\w+)?\s*\(|func\ Test\w|@Test\b|@pytest\.|TEST(?:_F|_P)?\s*\()"#
);

/// Whether a line has code: not a comment, blank or a lone bracket.
fn is_code(line: &str, prose: bool) -> bool {
    let line = line.trim();
    let lone = line.chars().all(|c| !c.is_alphanumeric());
    let comment = !prose
        && (line.starts_with("//")
            || line.starts_with("/*")
            || line.starts_with("* ")
            || line.starts_with("--")
            || line.starts_with("<!--")
            || (line.starts_with('#')
                && !line.starts_with("#[")
                && !line.starts_with("#!")
                && !line.starts_with("#include")
                && !line.starts_with("#define")
                && !line.starts_with("#if")
                && !line.starts_with("#e")));
    !lone && !comment
}

fn gutted(
    policy: &Policy,
    change: &FileChange<'_>,
    compared: &FileComparison,
    base: &str,
    draft: &str,
) -> Option<RuleMatch> {
    let prose = [".md", ".txt", ".rst", ".adoc"]
        .iter()
        .any(|end| change.path.name().to_lowercase().ends_with(end));
    let code = |text: &str| text.lines().filter(|line| is_code(line, prose)).count();
    let (was, is) = (code(base), code(draft));
    let enough = policy.limits.min_lines_for_ratio;
    if was >= enough && policy.limits.exceeds_ratio(was.saturating_sub(is), was) {
        let words = format!("{was} lines of code reduced to {is}");
        return Some(RuleMatch::new(GateRule::DiffGutted, None, words));
    }
    let tests = |text: &str| text.lines().filter(|line| hits(&TEST, line)).count();
    let (tested, tests_left) = (tests(base), tests(draft));
    if tested >= 2 && tests_left * 2 <= tested {
        let words = format!("{tested} tests reduced to {tests_left}");
        return Some(RuleMatch::new(GateRule::DiffGutted, None, words));
    }
    let removed = compared.removed.iter().filter(|line| is_code(line, prose)).count();
    let mut stub = None;
    let mut came = 0;
    for (number, line) in &compared.added {
        if hits(&STUB, line) {
            stub = stub.or(Some(*number));
        } else if is_code(line, prose) {
            came += 1;
        }
    }
    let line = stub.filter(|_| !prose && removed >= 5 && came * 3 < removed)?;
    let words = format!("{removed} lines of code replaced by a stub");
    Some(RuleMatch::new(GateRule::DiffGutted, Some(line), words))
}
