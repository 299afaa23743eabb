//! The critic and the decision makers. Each turn follows from the words of the turns before it.

use super::facts::{Facts, USUAL};
use super::topics::{TOPICS, Topic, topic_of};
use super::{MARK, chance, last_question, system};
use crate::debate::{
    Answer, CriticTurn, DecisionMakerTurn, ObjectionSeverity, RaisedObjection, Scores, Stance,
};
use crate::model::{ModelRequest, Purpose, Role};

/// What the request is about.
struct Scene<'a> {
    facts: Facts,
    /// The move's title.
    title: &'a str,
    /// `D2`; the critic before anyone spoke has none.
    seat: &'a str,
    round: u32,
    /// The rules of this side, with the scale of the scores.
    rules: &'a str,
    asked: &'a str,
}

impl<'a> Scene<'a> {
    fn of(request: &'a ModelRequest) -> Option<Self> {
        let (rules, case) = (system(request, 1), system(request, 2));
        let asked = last_question(request);
        let (_, behind) = case.split_once("\n# m")?;
        let title = behind.split_once(": ")?.1.lines().next()?;
        let seat = seat_of(case, "You are ").or_else(|| first_speaker(asked));
        Some(Self {
            facts: Facts::read(system(request, 0)),
            title,
            seat: seat.unwrap_or(""),
            round: round_of(asked).unwrap_or(1),
            rules,
            asked,
        })
    }

    fn pick(&self, what: &str, end: usize) -> usize {
        chance(&[self.title, self.seat, what], end)
    }

    /// A sentence with a number that belongs to a topic; another one each round.
    fn fact(&self, topic: &Topic) -> Option<String> {
        let skip = usize::try_from(self.round).unwrap_or(0) % 2;
        let own = self.facts.sentence(topic.rows, skip);
        own.or_else(|| self.facts.sentence(topic.rows, 0))
            .or_else(|| self.facts.sentence(USUAL, self.pick(topic.name, 4)))
    }

    /// Ids for a list, a new one each round, so that whoever concedes has looked at something.
    fn ids(&self, topic: &Topic) -> Vec<String> {
        let mut ids = self.facts.ids(topic.rows);
        ids.truncate(1);
        let usual = self.facts.ids(USUAL);
        let at = usize::try_from(self.round).unwrap_or(0);
        ids.extend(usual.get(at % usual.len().max(1)).cloned());
        ids.dedup();
        ids
    }
}

/// `D2` of `You are D2 (Operational Pragmatist).`
fn seat_of<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let lines = text.lines().flat_map(|line| line.split(". "));
    lines.filter_map(|line| line.strip_prefix(before)).find_map(|rest| {
        let (id, name) = rest.split_once(" (")?;
        (name.contains(')') && !id.contains(' ')).then_some(id)
    })
}

/// `D2` of `D2 (Operational Pragmatist) says:`
fn first_speaker(asked: &str) -> Option<&str> {
    let line = asked.lines().find(|line| line.ends_with(" says:"))?;
    line.split_once(" (").map(|(id, _)| id)
}

/// The number of `Round 3 of 10.`
fn round_of(asked: &str) -> Option<u32> {
    let (_, behind) = asked.rsplit_once("Round ")?;
    behind.split(' ').next()?.parse().ok()
}

/// The critic's turn.
pub(super) fn critic(request: &ModelRequest) -> Option<String> {
    let scene = Scene::of(request)?;
    let turn = if scene.seat.is_empty() { opening(&scene) } else { press(&scene, request) };
    serde_json::to_string(&turn).ok()
}

fn opening(scene: &Scene<'_>) -> CriticTurn {
    let first = scene.pick("opening", TOPICS.len());
    // Three steps of three never meet among eight.
    let topics = [0, 3, 6].map(|step| &TOPICS[(first + step) % TOPICS.len()]);
    let [one, two, three] = topics;
    let found = if scene.asked.contains("found this:") {
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
fn sentence(topic: &Topic) -> String {
    format!("{}: {}", topic.name, topic.raised)
}

/// A later turn: in every other round an objection is settled, one is pressed, and in every third
/// round one is new.
fn press(scene: &Scene<'_>, request: &ModelRequest) -> CriticTurn {
    let Raised { open, heard } = Raised::before(request);
    let answered = listed(scene.asked, "Answers ");
    let conceded = listed(scene.asked, "Concedes ");
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
    if let Some(topic) = fresh(scene, &heard) {
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

/// A topic that this thread has not heard, in every third round.
fn fresh(scene: &Scene<'_>, heard: &[&'static Topic]) -> Option<&'static Topic> {
    if !scene.round.is_multiple_of(3) {
        return None;
    }
    let from = scene.pick("fresh", TOPICS.len());
    let mut topics = TOPICS.iter().cycle().skip(from).take(TOPICS.len());
    topics.find(|topic| heard.iter().all(|known| known.name != topic.name))
}

/// What the critic has raised in this conversation.
#[derive(Default)]
struct Raised {
    /// What is not withdrawn, with the ids that code gave.
    open: Vec<(String, &'static Topic)>,
    heard: Vec<&'static Topic>,
}

impl Raised {
    fn before(request: &ModelRequest) -> Self {
        let mut raised = Self::default();
        let mut waiting: Vec<&Topic> = Vec::new();
        for turn in &request.turns {
            let text = &*turn.block.text;
            if turn.role == Role::Assistant {
                let Ok(said) = serde_json::from_str::<CriticTurn>(text) else { continue };
                raised.open.retain(|(id, _)| !said.withdrawn.contains(id));
                let new = said.objections.iter().filter(|objection| objection.id == "new");
                waiting = new.filter_map(|objection| topic_of(&objection.text)).collect();
                raised.heard.extend(&waiting);
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

/// The ids of `Answers O1, D2-O3.`
fn listed<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let behind = text.rsplit_once(word).map_or("", |(_, behind)| behind);
    behind.split('.').next().unwrap_or("").split(", ").map(str::trim).collect()
}

/// A decision maker's turn.
pub(super) fn decision_maker(request: &ModelRequest) -> Option<String> {
    let scene = Scene::of(request)?;
    let open: Vec<(&str, &Topic)> = objections_in(scene.asked);
    let grants = scene.pick("temper", 5);
    // Some seats grant a point in the middle of the debate, a few of them the move at its end.
    let is_granting = scene.round == 4 + u32::try_from(grants).unwrap_or(0);
    let granted = if is_granting { open.last() } else { None };
    let answered: Vec<&(&str, &Topic)> = open
        .iter()
        .filter(|(id, _)| granted.is_none_or(|(given, _)| given != id))
        .take(2)
        .collect();
    let stance = match grants {
        0 if scene.round >= 8 && scene.pick("end", 3) == 0 => Stance::Concede,
        0 | 1 if scene.round >= 5 => Stance::Partial,
        _ if is_granting => Stance::Partial,
        _ => Stance::Hold,
    };
    let mut parts = vec![match (stance, scene.round % 2) {
        (Stance::Hold, 0) => format!("I stay with \"{}\".", scene.title),
        (Stance::Hold, _) => "The doubt is fair, the conclusion is not.".to_owned(),
        (Stance::Partial, _) => "I defend the core of the move and grant a part.".to_owned(),
        (Stance::Concede, _) => "Taken together, the objections outweigh the case.".to_owned(),
    }];
    for (id, topic) in &answered {
        parts.push(format!("On {id}: {}", topic.answered));
        parts.extend(scene.fact(topic));
    }
    if let Some((id, topic)) = granted {
        parts.push(format!("{id} I grant. {}", topic.granted));
    }
    if answered.is_empty() {
        parts.push("What stands against the move was answered before.".to_owned());
        parts.extend(scene.facts.sentence(USUAL, scene.pick("calm", 4)));
    }
    parts.push(format!("{} {MARK}", closing(scene.seat, scene.round)));
    let turn = DecisionMakerTurn {
        message: parts.join(" "),
        stance,
        answers: answered
            .iter()
            .map(|(id, topic)| Answer { objection: (*id).to_owned(), evidence: scene.ids(topic) })
            .collect(),
        conceded: granted.map(|(id, _)| (*id).to_owned()).into_iter().collect(),
        scores: None,
    };
    serde_json::to_string(&turn).ok()
}

/// What a seat always comes back to.
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

/// Objections as the critic's words list them: `O1 (major): Demand: nothing …`
fn objections_in(asked: &str) -> Vec<(&str, &'static Topic)> {
    asked
        .lines()
        .filter_map(|line| {
            let (id, behind) = line.split_once(" (")?;
            let (_, text) = behind.split_once("): ")?;
            Some((id, topic_of(text)?))
        })
        .collect()
}

/// The scores after a debate.
pub(super) fn score(request: &ModelRequest) -> Option<String> {
    let scene = Scene::of(request)?;
    let is_fatal = scene.asked.contains("(fatal)");
    let stays = if is_fatal { "A fatal point stays open." } else { "Nothing fatal stays open." };
    scores(&scene, merit(&scene), i64::from(is_fatal), stays)
}

/// The scores without one: what a debate finds is not known, and a move looks a little better or
/// worse than after it. Doing nothing is worth little and costs nothing.
pub(super) fn score_alone(request: &ModelRequest) -> Option<String> {
    let scene = Scene::of(request)?;
    if request.purpose == Purpose::ScoreNothing {
        return scores(&scene, 0, 0, "Nothing changes, for better or worse.");
    }
    let unknown = i64::try_from(scene.pick("before a debate", 3)).ok()? - 1;
    scores(&scene, merit(&scene), unknown, "Nobody has spoken against it.")
}

/// A move's merit is the same for all seats; a seat adds its temper, a metric its own bit.
fn merit(scene: &Scene<'_>) -> i64 {
    i64::try_from(chance(&[scene.title, "merit"], 8)).unwrap_or(0)
}

fn scores(scene: &Scene<'_>, merit: i64, against: i64, stays: &str) -> Option<String> {
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
    let basis = scene.facts.sentence(USUAL, scene.pick("basis", 4));
    let parts = [
        Some(stays.to_owned()),
        Some(closing(scene.seat, 0).to_owned()),
        basis,
        Some(MARK.to_owned()),
    ];
    let reasoning = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let turn = DecisionMakerTurn {
        message: String::new(),
        stance: Stance::Partial,
        answers: Vec::new(),
        conceded: Vec::new(),
        scores: Some(Scores { metrics: scores, reasoning }),
    };
    serde_json::to_string(&turn).ok()
}
