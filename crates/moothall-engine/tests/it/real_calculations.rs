//! Calculations of debates in real sandboxes: their values, what they read and assume, and programs
//! that attack. A missing prerequisite fails a test with a message that says what to run.
#![expect(clippy::print_stdout, reason = "the measured figures")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use moothall_core::debate::{
    CALCULATION_IMAGE, CalculationResult, Debate, DebateInput, DebateResult,
};
use moothall_core::sandbox::{ExecuteRequest, FileRef, IsolationClass, SandboxLabels};
use moothall_core::{
    Conclusion, Effect, EffectId, EffectResult, RunEventBody, RunFinding, Workflow as _,
};
use moothall_engine::SandboxExecutor;
use moothall_sandbox::{
    EngineName, ExecutionJob, HostOptions, MemoryBudget, PoolOptions, ProgramExecutor as _,
    SandboxHost, SandboxPolicy, SandboxRunner, SandboxSpec, SharedKernel,
};
use serde_json::{Value, json};

use crate::panel::input;
use crate::real_debate::{guest, images, jail, target};
use crate::support::reply;

/// How many times longer than promised a calculation may take. The gate runs other tests beside
/// these; `.ci/long calculations` sets 1.
const FACTOR: &str = "MOOTHALL_TEST_CALCULATION_FACTOR";

/// The facts that programs read.
const FACTS: [(&str, &str); 6] = [
    ("Revenue:FY2025", "412000000"),
    ("Revenue:FY2024", "388500000"),
    ("NetIncome:FY2025", "58700000"),
    ("OperatingIncome:FY2025", "83100000"),
    ("Cash:FY2025", "146250000"),
    ("TotalDebt:FY2025", "97300000"),
];

fn facts() -> Vec<u8> {
    serde_json::to_vec(&FACTS.into_iter().collect::<BTreeMap<_, _>>()).unwrap()
}

/// Real sandboxes for calculations, with their temporary directory.
struct CalculationSandboxes {
    executor: SandboxExecutor,
    _state: tempfile::TempDir,
}

async fn open(engine: EngineName, idle: usize) -> CalculationSandboxes {
    let state = tempfile::tempdir().unwrap();
    let options = HostOptions {
        images: images(CALCULATION_IMAGE),
        cache: target().join("tmp/sandboxes"),
        state: state.path().to_owned(),
        guest: guest(),
        jail: jail(),
    };
    let policy = SandboxPolicy {
        engine: Some(engine),
        minimum: IsolationClass::SharedKernel,
        shared_kernel: SharedKernel::Refused,
    };
    let host = SandboxHost::open(options).unwrap();
    let chosen = host.choose(&policy, CALCULATION_IMAGE).await.unwrap();
    let options = PoolOptions { idle, memory: MemoryBudget::new(2 << 30) };
    CalculationSandboxes {
        executor: SandboxExecutor::new(SandboxRunner::new(chosen, options)),
        _state: state,
    }
}

impl CalculationSandboxes {
    async fn execute(&self, id: &EffectId, request: &ExecuteRequest) -> EffectResult {
        let labels = SandboxLabels::default().with("effect", id.as_str());
        let inputs = request.inputs.keys().map(|path| (path.clone(), facts())).collect();
        match self.executor.execute(ExecutionJob { labels: &labels, request, inputs }).await {
            Ok(output) => EffectResult::Executed(Box::new(output.execution)),
            Err(failure) => EffectResult::NotExecuted(failure),
        }
    }

    /// Holds a debate in which D1 attaches a program to its first message. `message` writes the
    /// messages of the second round, with the calculation at hand.
    async fn debate(
        &self,
        code: &str,
        message: impl Fn(&str, &CalculationResult) -> String,
    ) -> CalculatedDebate {
        let input = DebateInput { calculations: Some(FileRef::of(&facts())), ..input("m1") };
        let mut debate = Debate::new(input).unwrap();
        let mut known: Option<CalculationResult> = None;
        let mut requests = Vec::new();
        let mut step = debate.start();
        let mut open: Vec<(EffectId, Effect)> = Vec::new();
        loop {
            for event in &step.publish {
                if let RunEventBody::Calculated { calculation, .. } = &event.body {
                    known = Some((**calculation).clone());
                }
            }
            if let Some(outcome) = step.outcome {
                let Conclusion::Debated(result) = outcome.conclusion else { panic!("no debate") };
                return CalculatedDebate { result: *result, findings: outcome.findings, requests };
            }
            open.extend(step.perform);
            let (id, effect) = open.remove(0);
            let result = match effect {
                Effect::Execute(request) => {
                    let result = self.execute(&id, &request).await;
                    requests.push((id.clone(), *request, result.clone()));
                    result
                }
                _ => {
                    let said = known.as_ref().map(|known| message(id.as_str(), known));
                    let said = said.unwrap_or_else(|| "So it is.".to_owned());
                    reply(&answer(id.as_str(), code, &said).to_string())
                }
            };
            step = debate.resume(&id, result).unwrap();
        }
    }
}

struct CalculatedDebate {
    result: DebateResult,
    findings: Vec<RunFinding>,
    requests: Vec<(EffectId, ExecuteRequest, EffectResult)>,
}

impl CalculatedDebate {
    fn calculation(&self) -> &CalculationResult {
        assert_eq!(self.result.calculations.len(), 1);
        self.result.calculations.first().unwrap()
    }

    fn misquotes(&self, subject: &str) -> usize {
        let is_misquote = |finding: &&RunFinding| {
            finding.rule.to_string() == "debate.calculation-misquoted" && finding.subject == subject
        };
        self.findings.iter().filter(is_misquote).count()
    }
}

/// What a speaker answers to any request of a debate.
fn answer(id: &str, code: &str, said: &str) -> Value {
    let calculation = match id {
        "m1/round-1/D1" => json!({"purpose": "What it shows.", "code": code}),
        _ => Value::Null,
    };
    match id.split('/').collect::<Vec<_>>().as_slice() {
        [_, "score", ..] => json!({
            "reasoning": "So it is.", "impact": 5, "feasibility": 5, "risk_adjusted_return": 5,
            "strategic_alignment": 5,
        }),
        [_, _, "critic", ..] => json!({
            "message": "No.", "objections": [], "withdrawn": [], "calculation": null,
        }),
        _ => json!({
            "message": said, "stance": "hold", "answers": [], "conceded": [],
            "calculation": calculation,
        }),
    }
}

/// A planted calculation: its program, the facts it reads, its constants, and how its value is
/// quoted.
struct PlantedProgram {
    code: String,
    facts: Vec<&'static str>,
    constants: Vec<String>,
    unit: &'static str,
}

fn planted(number: usize) -> PlantedProgram {
    let fact = |at: usize| FACTS[at % FACTS.len()].0;
    let (one, other) = (fact(number), fact(number + 1 + number % 4));
    let rate = format!("0.{:02}", 3 + number % 7);
    let years = [3, 5, 6, 7, 8, 9][number % 6];
    let (code, constants, unit) = match number % 5 {
        0 => {
            (format!("result('share', facts['{one}'] / facts['{other}'] * 100, '%')"), vec![], "%")
        }
        1 => (
            format!(
                "total = facts['{one}'] + facts['{other}']\nfor year in range({years}):\n    \
                 total *= 1 + {rate}\nresult('total', total, 'USD')"
            ),
            vec![years.to_string(), rate],
            "USD",
        ),
        2 => (
            format!(
                "import math\nrate = Decimal('{rate}')\n\
                 result('cover', facts['{one}'] / (facts['{other}'] * rate), 'x')"
            ),
            vec![rate],
            "x",
        ),
        3 => (
            format!(
                "keys = ['{one}', '{other}']\nmean = sum(facts[key] for key in keys) / 2\n\
                 result('mean', mean, 'USD')"
            ),
            vec![],
            "USD",
        ),
        _ => (
            format!("result('days', facts['{one}'] / facts['{other}'] * 365, 'days')"),
            vec![],
            "days",
        ),
    };
    let mut facts = vec![one, other];
    facts.sort_unstable();
    facts.dedup();
    PlantedProgram { code, facts, constants, unit }
}

/// The first value as a text prints it.
fn quote(calculation: &CalculationResult, unit: &str) -> String {
    let value: f64 = calculation.values().first().unwrap().value.to_string().parse().unwrap();
    match unit {
        "%" => format!("{value:.2}%"),
        "x" => format!("{value:.3}x"),
        "days" => format!("{value:.1} days"),
        _ => format!("${:.3} million", value / 1e6),
    }
}

/// The text with one digit changed, at another place for each number.
fn altered(text: &str, number: usize) -> String {
    let places: Vec<usize> =
        text.char_indices().filter(|(_, sign)| sign.is_ascii_digit()).map(|(at, _)| at).collect();
    let at = places[number % places.len()];
    let digit = text[at..=at].parse::<usize>().unwrap();
    let changed = (digit + 1 + number % 8) % 10;
    let changed = if changed == 0 && at == places[0] { (digit % 9) + 1 } else { changed };
    format!("{}{changed}{}", &text[..at], &text[at + 1..])
}

#[tokio::test]
async fn fifty_planted_calculations_are_read_and_their_quotes_are_checked() {
    let real = open(EngineName::Runsc, 2).await;
    let (mut accepted, mut flagged) = (0, 0);
    for number in 0..50 {
        let PlantedProgram { code, facts, constants, unit } = planted(number);
        let message = |id: &str, known: &CalculationResult| {
            let right = quote(known, unit);
            let quoted = if id.ends_with("/D2") { altered(&right, number) } else { right };
            format!("The program gives {quoted} [{}].", known.id)
        };
        let debated = real.debate(&code, message).await;
        let calculation = debated.calculation();
        assert_eq!(calculation.id, "X0:m1-D1-1");
        assert!(!calculation.values().is_empty(), "{number}: {calculation:?}");
        assert_eq!(calculation.facts, facts, "{number}");
        assert_eq!(calculation.constants, constants, "{number}");
        assert_eq!(calculation.is_assumed(), !constants.is_empty(), "{number}");
        accepted += usize::from(debated.misquotes("m1/round-2/D1") == 0);
        flagged += usize::from(debated.misquotes("m1/round-2/D2") > 0);
    }
    println!("quotes: {accepted} of 50 right ones accepted, {flagged} of 50 altered ones flagged");
    assert_eq!(accepted, 50);
    assert!(flagged >= 49, "{flagged} of 50 altered quotes are flagged");
    real.executor.shut_down().await;
}

/// Gets around the loader: what contains these programs is the sandbox.
const ESCAPE: &str = "load = result.__globals__['__builtins__'].__import__\n\
                      os, socket, sys, time = map(load, ['os', 'socket', 'sys', 'time'])\n";

/// Programs that attack, with the outcome that shows that they are contained. Those that end report
/// 0 if every attack was refused.
fn hostile(port: u16, secret: &str) -> Vec<(&'static str, String, &'static [&'static str])> {
    const REFUSED: &[&str] = &["escaped 0"];
    let tries = |attack: &str| {
        format!(
            "{ESCAPE}escaped = 0\ntry:\n    {}\n    escaped = 1\nexcept OSError:\n    pass\n\
             result('escaped', escaped)",
            attack.replace('\n', "\n    ")
        )
    };
    let connect = format!(
        "for host in ['127.0.0.1', '10.0.2.2', 'host.internal']:\n    try:\n        \
         socket.create_connection((host, {port}), 1)\n        break\n    except OSError:\n        \
         pass\nelse:\n    raise OSError"
    );
    let failed: &[&str] = &["failed: "];
    vec![
        ("network", tries(&connect), REFUSED),
        ("datagram", tries("socket.socket(2, 2).sendto(b'x', ('192.0.2.1', 53))"), REFUSED),
        ("host file", tries(&format!("os.open('{secret}', 0)")), REFUSED),
        ("write outside", tries("os.open('/usr/planted', os.O_CREAT | os.O_WRONLY)"), REFUSED),
        (
            "change the facts",
            tries("os.write(os.open('/inputs/facts.json', os.O_WRONLY), b'x')"),
            REFUSED,
        ),
        (
            "symbolic link",
            tries(&format!("os.symlink('{secret}', 'link')\nos.open('link', 0)")),
            REFUSED,
        ),
        (
            "fork",
            format!(
                "{ESCAPE}children = 0\ntry:\n    while children < 200:\n        \
                 if os.fork() == 0:\n            time.sleep(60)\n        children += 1\n\
                 except OSError:\n    pass\nresult('escaped', int(children > 16))"
            ),
            &["escaped 0", "failed: "],
        ),
        ("endless loop", "while True:\n    pass".to_owned(), failed),
        ("sleep", format!("{ESCAPE}time.sleep(60)\nresult('escaped', 1)"), failed),
        ("memory", "x = bytearray(1 << 30)\nresult('escaped', len(x))".to_owned(), failed),
        ("output", format!("{ESCAPE}os.write(1, b'x' * 100000)\nresult('escaped', 1)"), failed),
        ("clock", "import time\nresult('escaped', int(time.time()))".to_owned(), failed),
        (
            "kill all",
            format!("{ESCAPE}os.kill(-1, 9)\nresult('escaped', 0)"),
            &["escaped 0", "failed: "],
        ),
        (
            "disk",
            tries("open = load('io').open\nopen('big', 'wb').write(b'x' * (64 << 20))"),
            REFUSED,
        ),
    ]
}

async fn hostile_programs_are_contained_and_the_debate_ends(engine: EngineName) {
    let real = open(engine, 1).await;
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs_err::write(&secret, "secret").unwrap();
    let port = listener.local_addr().unwrap().port();
    let programs = hostile(port, secret.to_str().unwrap());
    let all = programs.len();
    let mut contained = 0;
    for (name, code, expected) in programs {
        let debated = real.debate(&code, |_, _| "Next.".to_owned()).await;
        assert_eq!(debated.result.rounds_done, 2, "{name}: the debate ends");
        let outcome = debated.calculation().outcome_text();
        let is_contained = expected.iter().any(|expected| outcome.starts_with(expected));
        println!("{name}: {outcome}");
        assert!(is_contained, "{name}: {outcome}");
        contained += 1;
    }
    assert!(listener.accept().is_err(), "nothing connected to the host");
    println!("{engine:?}: {contained} of {all} hostile programs contained");
    real.executor.shut_down().await;
}

/// A program that prints its own report cannot hide the numbers that it assumes.
#[tokio::test]
async fn a_forged_report_does_not_hide_assumed_constants() {
    let real = open(EngineName::Runsc, 0).await;
    let report = r#"{"error":null,"facts":["Revenue:FY2025"],"literals":[],"values":[{"name":"margin","unit":"%","value":"37"}]}"#;
    let code = format!("{ESCAPE}margin = 37\nos.write(1, b'{report}')\nos._exit(0)");
    let debated = real.debate(&code, |_, _| "Next.".to_owned()).await;
    let calculation = debated.calculation();
    assert_eq!(calculation.outcome_text(), "margin 37%");
    assert_eq!(calculation.constants, ["37"]);
    assert!(calculation.is_assumed());
    real.executor.shut_down().await;
}

/// Runs an ordinary program several times. All runs give the same bytes, and 95 % of them take at
/// most `limit`, multiplied by [`FACTOR`].
async fn programs_give_the_same_bytes_in_time(engine: EngineName, runs: usize, limit: Duration) {
    let factor: u32 = std::env::var(FACTOR).map_or(3, |factor| factor.parse().unwrap());
    let limit = limit * factor;
    let real = open(engine, 2).await;
    let code = "names = {'b', 'a', 'c'}\nresult(' '.join(names), \
                facts['NetIncome:FY2025'] / facts['Revenue:FY2025'] * 100, '%')";
    let debated = real.debate(code, |_, _| "Next.".to_owned()).await;
    let (id, request, first) = debated.requests.into_iter().next().unwrap();
    let EffectResult::Executed(first) = first else { panic!("not executed") };
    let spec = SandboxSpec { image: request.image.clone(), limits: request.limits };
    real.executor.prewarm(&spec);
    let mut times = Vec::new();
    for _ in 0..runs {
        let started = Instant::now();
        let EffectResult::Executed(again) = real.execute(&id, &request).await else {
            panic!("not executed")
        };
        times.push(started.elapsed());
        assert_eq!((&again.exit, &again.stdout), (&first.exit, &first.stdout));
    }
    times.sort_unstable();
    let p95 = times[(runs * 95).div_ceil(100) - 1];
    println!("{engine:?}: p50 {:?}, p95 {p95:?} of {runs} runs", times[runs.div_ceil(2) - 1]);
    assert!(p95 <= limit, "p95 {p95:?}, limit {limit:?}");
    real.executor.shut_down().await;
}

mod runsc {
    use super::*;

    #[tokio::test]
    async fn hostile_calculations_are_contained() {
        hostile_programs_are_contained_and_the_debate_ends(EngineName::Runsc).await;
    }

    #[tokio::test]
    async fn calculations_are_repeatable_and_keep_their_time_limit() {
        programs_give_the_same_bytes_in_time(EngineName::Runsc, 20, Duration::from_secs(1)).await;
    }
}

mod microvm {
    use super::*;

    #[tokio::test]
    async fn hostile_calculations_are_contained() {
        hostile_programs_are_contained_and_the_debate_ends(EngineName::Microvm).await;
    }

    #[tokio::test]
    async fn calculations_are_repeatable_and_keep_their_time_limit() {
        programs_give_the_same_bytes_in_time(EngineName::Microvm, 20, Duration::from_secs(2)).await;
    }
}
