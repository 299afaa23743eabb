//! Demo turns of the critic and the decision makers, derived from the turns before them.

use super::calculations;
use super::facts::{COMMON_METRICS, DemoFacts};
use super::topics::{ObjectionTopic, TOPICS, topic_of};
use super::{MARK, last_question, pseudo_random, system};
use crate::debate::{
    CriticTurn, DebateStance, DecisionMakerTurn, ObjectionAnswer, ObjectionSeverity,
    RaisedObjection, RawScores,
};
use crate::model::{CallPurpose, ModelRequest, PromptRole};

/// The parts of a debate request that the demo replies use.
struct DemoDebate<'a> {
    facts: DemoFacts<'a>,
    title: &'a str,
    /// Such as `D2`; empty for the critic's opening turn.
    seat: &'a str,
    round: u32,
    /// Rules for this side, including the score scale.
    rules: &'a str,
    question: &'a str,
    /// Whether scores have a separate schema, as in all but the first revision.
    is_separate_form: bool,
}

impl<'a> DemoDebate<'a> {
    fn of(request: &'a ModelRequest) -> Option<Self> {
        let (rules, case) = (system(request, 1), system(request, 2));
        let question = last_question(request);
        let (_, behind) = case.split_once("\n# m")?;
        let title = behind.split_once(": ")?.1.lines().next()?;
        let seat = member_id(case, "You are ").or_else(|| first_speaker(question));
        Some(Self {
            facts: DemoFacts::read(system(request, 0)),
            title,
            seat: seat.unwrap_or(""),
            round: round_of(question).unwrap_or(1),
            rules,
            question,
            is_separate_form: request
                .schema
                .as_ref()
                .is_some_and(|schema| schema.name() == "scores"),
        })
    }

    fn pick(&self, what: &str, end: usize) -> usize {
        pseudo_random(&[self.title, self.seat, what], end)
    }

    /// A sentence with a number for a topic, alternating between rounds.
    fn fact(&self, topic: &ObjectionTopic) -> Option<String> {
        let skip = usize::try_from(self.round).unwrap_or(0) % 2;
        let own = self.facts.sentence(topic.rows, skip);
        own.or_else(|| self.facts.sentence(topic.rows, 0))
            .or_else(|| self.facts.sentence(COMMON_METRICS, self.pick(topic.name, 4)))
    }

    /// Evidence ids for a topic, with a new one each round so that concessions cite new evidence.
    fn ids(&self, topic: &ObjectionTopic) -> Vec<String> {
        let mut ids = self.facts.ids(topic.rows);
        ids.truncate(1);
        let usual = self.facts.ids(COMMON_METRICS);
        let at = usize::try_from(self.round).unwrap_or(0);
        ids.extend(usual.get(at % usual.len().max(1)).cloned());
        ids.dedup();
        ids
    }
}

/// Extracts `D2` from `You are D2 (Operational Pragmatist).`
fn member_id<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let lines = text.lines().flat_map(|line| line.split(". "));
    lines.filter_map(|line| line.strip_prefix(before)).find_map(|rest| {
        let (id, name) = rest.split_once(" (")?;
        (name.contains(')') && !id.contains(' ')).then_some(id)
    })
}

/// Extracts `D2` from `D2 (Operational Pragmatist) says:`
fn first_speaker(question: &str) -> Option<&str> {
    let line = question.lines().find(|line| line.ends_with(" says:"))?;
    line.split_once(" (").map(|(id, _)| id)
}

/// Extracts the number from `Round 3 of 10.`
fn round_of(question: &str) -> Option<u32> {
    let (_, behind) = question.rsplit_once("Round ")?;
    behind.split(' ').next()?.parse().ok()
}

pub(crate) fn critic(request: &ModelRequest) -> Option<String> {
    let scene = DemoDebate::of(request)?;
    if !scene.seat.is_empty() {
        return calculations::turn_json(request, &press(&scene, request), None);
    }
    let is_calculating = scene.pick("calculation", 3) == 0;
    let calculation = is_calculating.then(|| calculations::stress(&scene.facts)).flatten();
    calculations::turn_json(request, &opening(&scene), calculation)
}

fn opening(scene: &DemoDebate<'_>) -> CriticTurn {
    let first = scene.pick("opening", TOPICS.len());
    // With eight topics, offsets 0, 3 and 6 never collide.
    let topics = [0, 3, 6].map(|step| &TOPICS[(first + step) % TOPICS.len()]);
    let [one, two, three] = topics;
    let found = if scene.question.starts_with("Code checked") {
        " Code already found something in its numbers, and I take that list as read."
    } else {
        ""
    };
    let parts = [
        Some(format!("\"{}\" reads well, and the direction is not absurd.{found}", scene.title)),
        Some(format!("My doubts begin with the evidence. {}", sentence(one))),
        scene
            .fact(one)
            .map(|fact| format!("{fact} That is where the company stands, not what would change.")),
        Some(format!("Then there is the question of {}: {}", two.name.to_lowercase(), two.raised)),
        Some(format!("And on {}: {}", three.name.to_lowercase(), three.raised)),
        Some(format!("I will withdraw what is answered with evidence. {MARK}")),
    ];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let objections = topics.map(|topic| RaisedObjection {
        id: "new".to_owned(),
        severity: topic.severity,
        text: sentence(topic),
        evidence: scene.facts.ids(topic.rows).into_iter().take(1).collect(),
    });
    CriticTurn { message, objections: objections.into(), withdrawn: Vec::new() }
}

/// `Demand: nothing shows …`
fn sentence(topic: &ObjectionTopic) -> String {
    format!("{}: {}", topic.name, topic.raised)
}

/// A later critic turn: settles an objection every second round, presses one, and raises a new one
/// every third round.
fn press(scene: &DemoDebate<'_>, request: &ModelRequest) -> CriticTurn {
    let DemoObjections { open, raised_topics } = DemoObjections::earlier_in(request);
    let answered = listed(scene.question, "Answers ");
    let conceded = listed(scene.question, "Concedes ");
    let is_settling = scene.round.is_multiple_of(2);
    let settled = open.iter().find(|(id, _)| is_settling && answered.contains(&id.as_str()));
    let is_pressed =
        |id: &str| settled.is_none_or(|(other, _)| other != id) && !conceded.contains(&id);
    let pressed = open.iter().find(|(id, _)| is_pressed(id));
    let mut parts = vec![match scene.round % 3 {
        0 => format!("Back to \"{}\" and what you just said.", scene.title),
        1 => "Thank you for the direct answer.".to_owned(),
        _ => "Let us take the points one by one.".to_owned(),
    }];
    parts.extend(calculations::quotes(scene.question));
    if let Some((id, topic)) = settled {
        parts.push(format!("{id} is answered. {}", topic.settled));
    }
    let mut objections = Vec::new();
    if let Some((id, topic)) = pressed {
        let how = if answered.contains(&id.as_str()) { "you answer in part" } else { "stands" };
        parts.push(format!("{id} {how}. {}", topic.pressed));
        parts.extend(
            scene
                .fact(topic)
                .map(|fact| format!("{fact} That tells me the present, not the effect.")),
        );
        objections.push(RaisedObjection {
            id: id.clone(),
            severity: topic.severity,
            text: sentence(topic),
            evidence: scene.facts.ids(topic.rows).into_iter().take(1).collect(),
        });
    }
    if let Some(topic) = unraised_topic(scene, &raised_topics) {
        parts.push(format!("One more thing, on {}: {}", topic.name.to_lowercase(), topic.raised));
        objections.push(RaisedObjection {
            id: "new".to_owned(),
            severity: topic.severity.min(ObjectionSeverity::Major),
            text: sentence(topic),
            evidence: scene.ids(topic),
        });
    }
    parts.push(format!(
        "What would change my mind is a condition that can be checked before the money is spent. {MARK}"
    ));
    let withdrawn = settled.map(|(id, _)| id.clone()).into_iter().collect();
    CriticTurn { message: parts.join(" "), objections, withdrawn }
}

/// A topic not yet raised in this thread, every third round.
fn unraised_topic(
    scene: &DemoDebate<'_>,
    raised_topics: &[&'static ObjectionTopic],
) -> Option<&'static ObjectionTopic> {
    if !scene.round.is_multiple_of(3) {
        return None;
    }
    let from = scene.pick("fresh", TOPICS.len());
    let mut topics = TOPICS.iter().cycle().skip(from).take(TOPICS.len());
    topics.find(|topic| raised_topics.iter().all(|known| known.name != topic.name))
}

/// Objections that the critic raised earlier in this conversation.
#[derive(Default)]
struct DemoObjections {
    /// Objections not withdrawn, with their assigned ids.
    open: Vec<(String, &'static ObjectionTopic)>,
    raised_topics: Vec<&'static ObjectionTopic>,
}

impl DemoObjections {
    fn earlier_in(request: &ModelRequest) -> Self {
        let mut raised = Self::default();
        let mut waiting: Vec<&ObjectionTopic> = Vec::new();
        for turn in &request.turns {
            let text = &*turn.block.text;
            if turn.role == PromptRole::Assistant {
                let said = calculations::without_calculation(text);
                let Ok(said) = serde_json::from_value::<CriticTurn>(said) else { continue };
                raised.open.retain(|(id, _)| !said.withdrawn.contains(id));
                let new = said.objections.iter().filter(|objection| objection.id == "new");
                waiting = new.filter_map(|objection| topic_of(&objection.text)).collect();
                raised.raised_topics.extend(&waiting);
            } else if let Some(line) =
                text.lines().find_map(|line| line.strip_prefix("Your new objections are "))
            {
                let ids = line.trim_end_matches('.').split(", ").map(str::to_owned);
                raised.open.extend(ids.zip(std::mem::take(&mut waiting)));
            }
        }
        raised
    }
}

/// Extracts the ids from `Answers O1, D2-O3.`
fn listed<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let behind = text.rsplit_once(word).map_or("", |(_, behind)| behind);
    behind.split('.').next().unwrap_or("").split(", ").map(str::trim).collect()
}

pub(crate) fn decision_maker(request: &ModelRequest) -> Option<String> {
    let scene = DemoDebate::of(request)?;
    let open: Vec<(&str, &ObjectionTopic)> = objections_in(scene.question);
    let grants = scene.pick("temper", 5);
    // Some decision makers concede a point in mid-debate; a few concede the whole move at the end.
    let is_granting = scene.round == 4 + u32::try_from(grants).unwrap_or(0);
    let granted = if is_granting { open.last() } else { None };
    let answered: Vec<&(&str, &ObjectionTopic)> = open
        .iter()
        .filter(|(id, _)| granted.is_none_or(|(given, _)| given != id))
        .take(2)
        .collect();
    let stance = match grants {
        0 if scene.round >= 8 && scene.pick("end", 3) == 0 => DebateStance::Concede,
        0 | 1 if scene.round >= 5 => DebateStance::Partial,
        _ if is_granting => DebateStance::Partial,
        _ => DebateStance::Hold,
    };
    let mut parts = vec![match (stance, scene.round % 2) {
        (DebateStance::Hold, 0) => format!("I stay with \"{}\".", scene.title),
        (DebateStance::Hold, _) => "The doubt is fair, the conclusion is not.".to_owned(),
        (DebateStance::Partial, _) => "I defend the core of the move and grant a part.".to_owned(),
        (DebateStance::Concede, _) => {
            "Taken together, the objections outweigh the case.".to_owned()
        }
    }];
    for (id, topic) in &answered {
        parts.push(format!("On {id}: {}", topic.answered));
        parts.extend(scene.fact(topic));
    }
    if let Some((id, topic)) = granted {
        parts.push(format!("{id} I grant. {}", topic.granted));
    }
    parts.extend(calculations::quotes(scene.question));
    if answered.is_empty() {
        parts.push("What stands against the move was answered before.".to_owned());
        parts.extend(scene.facts.sentence(COMMON_METRICS, scene.pick("calm", 4)));
    }
    parts.push(format!("{} {MARK}", closing(scene.seat, scene.round)));
    let turn = DecisionMakerTurn {
        message: parts.join(" "),
        stance,
        answers: answered
            .iter()
            .map(|(id, topic)| ObjectionAnswer {
                objection: (*id).to_owned(),
                evidence: scene.ids(topic),
            })
            .collect(),
        conceded: granted.map(|(id, _)| (*id).to_owned()).into_iter().collect(),
        scores: None,
    };
    let is_first = scene.round == 1 && scene.seat == "D1";
    let calculation = is_first.then(|| calculations::margin(&scene.facts)).flatten();
    calculations::turn_json(request, &turn, calculation)
}

/// Recurring closing argument of each decision maker.
fn closing(seat: &str, round: u32) -> &'static str {
    match (seat, round % 2) {
        ("D1", 0) => "Position is built in years when others hesitate.",
        ("D1", _) => "What counts is where it leaves us against competitors.",
        ("D2", 0) => "The steps are small, named and can be stopped.",
        ("D2", _) => "I look at who does what next week, and that is in the plan.",
        ("D3", 0) => "Owners see a measured step and not a gamble.",
        ("D3", _) => "It is easy to explain, and that protects the name.",
        (_, 0) => "The first step is cheap and teaches us something.",
        _ => "The case rests on conditions that can be checked.",
    }
}

/// Parses objections listed as `O1 (major): Demand: nothing …`
fn objections_in(question: &str) -> Vec<(&str, &'static ObjectionTopic)> {
    question
        .lines()
        .filter_map(|line| {
            let (id, behind) = line.split_once(" (")?;
            let (_, text) = behind.split_once("): ")?;
            Some((id, topic_of(text)?))
        })
        .collect()
}

/// Scores after a debate.
pub(crate) fn score(request: &ModelRequest) -> Option<String> {
    let scene = DemoDebate::of(request)?;
    let is_fatal = scene.question.contains("(fatal)");
    let stays = if is_fatal { "A fatal point stays open." } else { "Nothing fatal stays open." };
    scores(&scene, merit(&scene), i64::from(is_fatal), stays)
}

/// Scores without a debate. A move may score one point higher or lower than after one, because its
/// objections are unknown. Doing nothing has no merit and no deductions.
pub(crate) fn score_alone(request: &ModelRequest) -> Option<String> {
    let scene = DemoDebate::of(request)?;
    if request.purpose == CallPurpose::ScoreNothing {
        return scores(&scene, 0, 0, "Nothing changes, for better or worse.");
    }
    let unknown = i64::try_from(scene.pick("before a debate", 3)).ok()? - 1;
    scores(&scene, merit(&scene), unknown, "There was no argument against it.")
}

/// A move's merit is the same for all decision makers; each member and each metric adds an offset.
fn merit(scene: &DemoDebate<'_>) -> i64 {
    i64::try_from(pseudo_random(&[scene.title, "merit"], 8)).unwrap_or(0)
}

fn scores(scene: &DemoDebate<'_>, merit: i64, against: i64, stays: &str) -> Option<String> {
    let metrics = scene.rules.lines().filter_map(|line| {
        let (id, _) = line.strip_prefix('`')?.split_once("` (")?;
        Some(id)
    });
    let temper = i64::try_from(scene.pick("temper of scores", 2)).ok()? - 1;
    let scores = metrics
        .map(|metric| {
            let own = i64::try_from(scene.pick(metric, 3)).unwrap_or(0) - 1;
            let score = 5 + merit / 2 + temper + own - against;
            (metric.to_owned(), score.clamp(1, 10))
        })
        .collect();
    let basis = scene.facts.sentence(COMMON_METRICS, scene.pick("basis", 4));
    let parts = [
        Some(stays.to_owned()),
        Some(closing(scene.seat, 0).to_owned()),
        basis,
        Some(MARK.to_owned()),
    ];
    let reasoning = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let scores = RawScores { metrics: scores, reasoning };
    if scene.is_separate_form {
        return serde_json::to_string(&scores).ok();
    }
    let turn = DecisionMakerTurn {
        message: String::new(),
        stance: DebateStance::Partial,
        answers: Vec::new(),
        conceded: Vec::new(),
        scores: Some(scores),
    };
    serde_json::to_string(&turn).ok()
}
