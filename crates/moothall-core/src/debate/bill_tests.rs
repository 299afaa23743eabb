//! Computes the prompt cost of a debate from its actual requests and compares it with the layout of
//! the original design document.
//!
//! Models the strictest known provider: a prefix is cached up to a breakpoint and only from 4,096
//! tokens; reading costs a tenth, and writing a quarter more than an uncached token. Calls sent
//! together cannot read what the others write. A different schema is a different prefix.

use std::collections::BTreeSet;

use serde_json::json;

use super::support::{Ran, input, run, said, scores};
use super::{DebateInput, DebateLogEntry, transcript};
use crate::model::ModelRequest;
use crate::{Sha256Hex, tokens_expected};

/// The moves of a run, which share the dossier.
const MOVES: f64 = 15.0;
const MESSAGE_TOKENS: u64 = 350;
const MOVE_TOKENS: u64 = 800;

/// The smallest prefix that is cached.
const LEAST_CACHED: u64 = 4_096;

/// How many blocks before a breakpoint are searched for a cached prefix.
const LOOK_BACK: usize = 20;

/// Tokens a chat template adds to a request and to each message, as assumed by `ModelRequest`.
const HEAD_TOKENS: u64 = 24;
const BLOCK_TOKENS: u64 = 8;

/// Prompt tokens by how they are billed.
#[derive(Debug, Clone, Copy, Default)]
struct Bill {
    plain: u64,
    written: u64,
    read: u64,
}

impl Bill {
    /// The cost in uncached tokens.
    fn units(self) -> f64 {
        self.plain as f64 + 1.25 * self.written as f64 + 0.1 * self.read as f64
    }

    fn add(&mut self, other: Self) {
        self.plain += other.plain;
        self.written += other.written;
        self.read += other.read;
    }
}

/// A provider's cache.
#[derive(Default)]
struct Cache(BTreeSet<Sha256Hex>);

impl Cache {
    /// Bills calls that are sent together, grouped by debate.
    fn bill<const N: usize>(&mut self, wave: [Vec<&ModelRequest>; N]) -> [Bill; N] {
        let mut written = Vec::new();
        let bills = wave.map(|requests| {
            let mut bill = Bill::default();
            for request in requests {
                bill.add(self.bill_one(request, &mut written));
            }
            bill
        });
        self.0.extend(written);
        bills
    }

    fn bill_one(&self, request: &ModelRequest, written: &mut Vec<Sha256Hex>) -> Bill {
        let prefixes = prefixes(request);
        let marks: Vec<usize> = prefixes
            .iter()
            .enumerate()
            .filter(|(_, prefix)| prefix.is_breakpoint && prefix.tokens >= LEAST_CACHED)
            .map(|(index, _)| index)
            .collect();
        let known = marks.iter().flat_map(|mark| mark.saturating_sub(LOOK_BACK)..=*mark);
        let read = known
            .filter_map(|index| prefixes.get(index))
            .filter(|prefix| self.0.contains(&prefix.hash))
            .map(|prefix| prefix.tokens)
            .max()
            .unwrap_or(0);
        let cached = marks.last().map_or(0, |mark| prefixes[*mark].tokens);
        let all = prefixes.last().unwrap().tokens;
        written.extend(marks.iter().map(|mark| prefixes[*mark].hash));
        Bill { plain: all - cached, written: cached - read, read }
    }
}

struct Prefix {
    hash: Sha256Hex,
    tokens: u64,
    is_breakpoint: bool,
}

/// Every prefix of a prompt that ends with a block.
fn prefixes(request: &ModelRequest) -> Vec<Prefix> {
    let schema = request.schema.as_ref().unwrap().text();
    let mut tokens = HEAD_TOKENS + tokens_expected(schema);
    let mut hash = Sha256Hex::of(format!("{} {schema}", request.model).as_bytes());
    request
        .blocks()
        .map(|block| {
            tokens += BLOCK_TOKENS + block.text.tokens_expected();
            hash = Sha256Hex::of(format!("{hash} {}", block.text.sha256()).as_bytes());
            Prefix { hash, tokens, is_breakpoint: block.cache.is_some() }
        })
        .collect()
}

/// Prose of this many tokens.
fn prose(tokens: u64, seed: u64) -> String {
    const WORDS: [&str; 12] = [
        "margin", "service", "contract", "customer", "because", "growth", "evidence", "risk",
        "the", "with", "company", "cannot",
    ];
    let mut text = format!("Point {seed}:");
    let mut state = seed;
    // Counting is slow without optimization, so count after every fortieth word, and at the end
    // after each.
    let mut counted = tokens_expected(&text);
    for word in 0.. {
        if word % 40 == 0 || counted + 100 > tokens {
            counted = tokens_expected(&text);
        }
        if counted >= tokens {
            break;
        }
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(' ');
        text.push_str(WORDS[usize::try_from(state >> 33).unwrap() % WORDS.len()]);
    }
    text
}

/// The length of an answer.
#[derive(Debug, Clone, Copy)]
enum Length {
    /// The whole answer, including lists, is as long as a message in the design document.
    Answer,
    /// The message alone is that long; the lists are extra.
    Message,
}

/// A valid answer: a message with one objection pressed again and a new one, or with two answers.
fn answer(id: &str, length: Length) -> String {
    let seed = id.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte)) % 1000;
    let is_critic = id.contains("critic");
    let written = |message: &str| {
        if is_critic {
            let objection = |id: &str, text: &str| json!({"id": id, "severity": "major", "text": text, "evidence": ["F0:Revenue:FY2025"]});
            let objections = [
                objection("O1", "The growth that is shown is not the company's own."),
                objection("new", "Nobody says who pays for the first year of it."),
            ];
            json!({"message": message, "objections": objections, "withdrawn": []}).to_string()
        } else {
            let answers =
                ["O1", "O2"].map(|id| json!({"objection": id, "evidence": ["F0:Revenue:FY2025"]}));
            json!({
                "message": message, "stance": "hold", "answers": answers, "conceded": [],
                "scores": null,
            })
            .to_string()
        }
    };
    let lists = match length {
        Length::Answer => tokens_expected(&written("")),
        Length::Message => 0,
    };
    written(&prose(MESSAGE_TOKENS - lists, seed))
}

fn move_markdown(number: u64) -> String {
    format!("# m{number}: A move\n\n{}\n", prose(MOVE_TOKENS - 10, 1000 + number))
}

fn debate_input(number: u64, dossier: &str) -> DebateInput {
    DebateInput {
        move_id: format!("m{number}"),
        dossier: dossier.into(),
        move_markdown: move_markdown(number).into(),
        ..input(10)
    }
}

/// The calls of a debate that are sent together.
fn calls(ran: &Ran, wave: Option<usize>) -> Vec<&ModelRequest> {
    let wave = wave.and_then(|wave| ran.waves.get(wave));
    wave.into_iter().flatten().map(|id| ran.question(id)).collect()
}

/// The cost with our layout: of the first debate, whose opening finds nothing in the cache, and of
/// any other. The others start after that opening is answered.
fn ours(dossier: &str, length: Length) -> [Bill; 2] {
    let score = scores([7; 4], "So it is.");
    let debate = |number| {
        let reply = |id: &str| {
            said(if id.contains("/score/") { score.clone() } else { answer(id, length) })
        };
        let ran = run(debate_input(number, dossier), reply);
        assert!(ran.asked.len() == 61 && ran.debated().degraded.is_empty());
        ran
    };
    let (ahead, other) = (debate(1), debate(2));
    let mut cache = Cache::default();
    let mut bills = [Bill::default(); 2];
    for moment in 0..=ahead.waves.len() {
        let wave = [calls(&ahead, Some(moment)), calls(&other, moment.checked_sub(1))];
        for (bill, more) in bills.iter_mut().zip(cache.bill(wave)) {
            bill.add(more);
        }
    }
    bills
}

/// The cost of a move with the design document's layout: one user prompt with the whole transcript,
/// starting with the round number. It sets no cache breakpoints, so nothing is cached.
fn source(evidence: &str) -> u64 {
    let mut plain = 0;
    let mut ask = |system: &str, prompt: String| {
        let texts = tokens_expected(system) + tokens_expected(&prompt);
        plain += HEAD_TOKENS + 2 * BLOCK_TOKENS + texts;
    };
    let content = format!("{}{evidence}", move_markdown(1));
    let mut log: Vec<DebateLogEntry> = Vec::new();
    let note = |log: &mut Vec<DebateLogEntry>, role: &str, round: u32| {
        let content = prose(MESSAGE_TOKENS, u64::from(round));
        log.push(DebateLogEntry { role: role.to_owned(), content, round });
    };
    for round in 1..=10 {
        let before = transcript(&log);
        if round == 1 {
            let prompt = SOURCE_OPENING.replace("{content}", &content);
            ask(SOURCE_CRITIC, prompt);
        } else {
            for (id, name, _) in SOURCE_DECISION_MAKERS {
                let prompt = SOURCE_CRITIQUE
                    .replace("{round_num}", &round.to_string())
                    .replace("{dm_id}", &format!("{id} ({name})"))
                    .replace("{content}", &content)
                    .replace("{transcript}", &before);
                ask(SOURCE_CRITIC, prompt);
            }
        }
        // The three logs have the same length.
        note(&mut log, "critic", round);
        let after = transcript(&log);
        for (_, _, persona) in SOURCE_DECISION_MAKERS {
            let prompt = SOURCE_DEFENCE.replace("{content}", &content);
            ask(persona, prompt.replace("{transcript}", &after));
        }
        note(&mut log, "D1", round);
    }
    let whole = transcript(&log);
    for (_, _, persona) in SOURCE_DECISION_MAKERS {
        let prompt = SOURCE_SCORING.replace("{move_content}", &content);
        ask(persona, prompt.replace("{transcript}", &whole));
    }
    plain
}

#[test]
#[expect(clippy::print_stdout, reason = "numbers for people")]
fn prompt_cost_stays_below_the_promised_share_of_the_source_documents() {
    let without = source("") as f64;
    for (dossier_tokens, length, is_promised) in [
        (5_000, Length::Answer, true),
        (5_000, Length::Message, false),
        (8_000, Length::Answer, false),
    ] {
        let dossier = prose(dossier_tokens, 1);
        let with = source(&format!("\n{dossier}\n")) as f64;
        let [ahead, other] = ours(&dossier, length);
        let a_move = (ahead.units() + (MOVES - 1.0) * other.units()) / MOVES;
        let (beside, bare) = (a_move / with, a_move / without);
        println!(
            "dossier of {dossier_tokens} tokens, {length:?} of {MESSAGE_TOKENS}: a move costs {a_move:.0}; \
             the source document's {with} with the evidence ({beside:.3} x), {without} without ({bare:.3} x); \
             a move that does not go ahead: {other:?}; if none did: {:.3} x, {:.3} x",
            ahead.units() / with,
            ahead.units() / without,
        );
        if is_promised {
            assert!(beside <= 0.25, "{beside}");
            assert!(bare <= 0.5, "{bare}");
        }
    }
}

/// The prompts of the design document, verbatim.
const SOURCE_OPENING: &str = "
Here is a proposed business move for HLXI:

{content}

Provide your initial counterpoints to this move. Challenge the reasoning,
question the evidence, and identify risks.
";

const SOURCE_CRITIQUE: &str = "
You are round {round_num} of negotiation about this move for HLXI:

{content}

Your conversation with {dm_id} so far:
{transcript}

Respond to {dm_id}'s latest rebuttal. If they made good points, acknowledge
them. If they dodged your concerns, press harder. Raise new counterpoints
if you see additional weaknesses.
";

const SOURCE_DEFENCE: &str = "
You are defending this business move for HLXI:

{content}

Here is the negotiation transcript so far:
{transcript}

Respond to the critic's latest points. Defend the move where you believe
it has merit, and concede where the critic makes valid points.
";

const SOURCE_CRITIC: &str = r#"
You are a veteran CFO who has seen three companies fail from overconfident
strategy. Your job is to find every weakness in a proposed business move.

You are:
- Sharp and intellectually honest — you don't oppose for the sake of opposing
- Thorough — you probe assumptions, demand evidence, and expose logical gaps
- Specific — you cite exact weaknesses, not vague concerns
- Fair — if a point is genuinely strong, you acknowledge it before moving on

When reviewing a move:
1. Identify the strongest claims in the reasoning
2. Challenge each claim: Is the evidence sufficient? Is there a counter-example?
3. Point out risks the proposer may have downplayed
4. Question whether the citations from F1/F2 actually support the conclusion

You are negotiating with decision makers who will defend this move. Engage
with their rebuttals substantively. If they make a good point, acknowledge it.
If they dodge your concern, press harder.
"#;

const SOURCE_DECISION_MAKERS: [(&str, &str, &str); 3] = [
    (
        "D1",
        "Growth Strategist",
        r#"
You are a Growth Strategist on the board of directors. You evaluate
business moves through the lens of market expansion, competitive
advantage, and long-term positioning.

You are inclined toward high-impact decisions, but you take the critic's
points seriously and must address them substantively before dismissing them.

When defending a move:
- Explain how it drives growth and competitive advantage
- Address the critic's concerns with specific counter-arguments
- Acknowledge valid risks while arguing the upside justifies them
- Reference data from F1/F2 to support your position

You can be swayed by strong market-timing arguments. If the critic
convincingly shows the timing is wrong, you may concede that point.
"#,
    ),
    (
        "D2",
        "Operational Pragmatist",
        r#"
You are an Operational Pragmatist on the board of directors. You evaluate
business moves through the lens of execution feasibility, resource
allocation, and operational risk.

You favor action but respect constraints. You are the person who asks
"can we actually pull this off?" and "what does execution look like?"

When defending a move:
- Explain how the company can realistically execute it
- Address resource and operational concerns raised by the critic
- Propose concrete implementation steps if challenged on feasibility
- Concede if the critic identifies genuine execution blockers

The critic can get to you by pointing out execution gaps, resource
constraints, or operational complexity you haven't addressed.
"#,
    ),
    (
        "D3",
        "Stakeholder Value Advocate",
        r#"
You are a Stakeholder Value Advocate on the board of directors. You evaluate
business moves through the lens of shareholder return, brand impact, and
public perception.

You are biased toward high-visibility wins but sensitive to reputational risk.
You think about how moves will be perceived by investors, media, and customers.

When defending a move:
- Explain the shareholder value proposition
- Address concerns about brand/reputation impact
- Argue for the move's signaling effect to the market
- Concede if the critic shows genuine reputational or regulatory risk

The critic can get to you by pointing out PR disasters, regulatory backlash,
or investor confidence erosion.
"#,
    ),
];

const SOURCE_SCORING: &str = r#"
You have just completed 10 rounds of negotiation about this business move:

{move_content}

Your full negotiation transcript:
{transcript}

Now score this move on the following 4 metrics, each out of 10.
Be OBJECTIVE — reflect what you genuinely believe after the full debate,
not just your initial position. If the critic raised valid concerns that
you could not fully address, let that reflect in your scores.

Metrics:
1. Impact (1-10): How significant is the effect on the company's growth, revenue, or market position?
2. Feasibility (1-10): How realistic is it to execute given current resources, timeline, and constraints?
3. Risk-Adjusted Return (1-10): How favorable is the potential upside relative to the downside exposure?
4. Strategic Alignment (1-10): How well does the move fit the company's long-term direction?

Respond ONLY with valid JSON in this exact format:
{
    "impact": <int>,
    "feasibility": <int>,
    "risk_adjusted_return": <int>,
    "strategic_alignment": <int>,
    "reasoning": "<1-2 sentence justification for your scores>"
}
"#;
