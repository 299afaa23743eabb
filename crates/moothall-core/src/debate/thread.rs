//! One conversation: the critic and one decision maker, each with a chain of its own.

use std::collections::BTreeSet;

use super::chain::{Chain, Voice};
use super::cites::cites;
use super::debated::{Scorecard, Stance};
use super::ids::ThreadIds;
use super::log::Entry;
use super::objections::{Docket, Raised};
use super::prompt;
use super::turn::{CriticTurn, DecisionMakerTurn};
use super::words::{MAX_MESSAGE_BYTES, clean};
use crate::consult::committee::Seat;
use crate::model::{FailureKind, ModelRequest, PromptText, Purpose};

/// The role of the critic in logs.
pub(super) const CRITIC: &str = "critic";

/// What stands where a model said nothing at all; providers refuse a turn without text.
const NOTHING: &str = "(nothing was said)";

/// Something that was said, in its form or not.
#[derive(Debug)]
pub(super) struct Spoken<T> {
    /// What others read and a log keeps.
    pub(super) message: String,
    /// What the speaker's own chain keeps.
    pub(super) raw: PromptText,
    /// The form; none where the words came without it.
    pub(super) turn: Option<T>,
    /// What is cited.
    pub(super) cites: Vec<String>,
}

impl Spoken<CriticTurn> {
    pub(super) fn critic(turn: CriticTurn, raw: String) -> Self {
        let evidence = turn.objections.iter().flat_map(|objection| &objection.evidence);
        let prose: Vec<&str> = turn.objections.iter().map(|raised| raised.text.as_str()).collect();
        let cites = cites(&format!("{} {}", turn.message, prose.join(" ")), evidence);
        let message = clean(&turn.message, MAX_MESSAGE_BYTES);
        Self { message, raw: raw.into(), turn: Some(turn), cites }
    }
}

impl Spoken<DecisionMakerTurn> {
    pub(super) fn decision_maker(turn: DecisionMakerTurn, raw: String) -> Self {
        let evidence = turn.answers.iter().flat_map(|answer| &answer.evidence);
        let cites = cites(&turn.message, evidence);
        let message = clean(&turn.message, MAX_MESSAGE_BYTES);
        Self { message, raw: raw.into(), turn: Some(turn), cites }
    }
}

impl<T> Spoken<T> {
    /// Words that came without their form.
    pub(super) fn unstructured(text: &str) -> Self {
        let message = match clean(text, MAX_MESSAGE_BYTES) {
            empty if empty.is_empty() => NOTHING.to_owned(),
            message => message,
        };
        Self { raw: message.as_str().into(), turn: None, cites: cites(&message, []), message }
    }
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) seat: Seat,
    pub(super) ids: ThreadIds,
    pub(super) voice: Voice,
    pub(super) critic: Chain,
    pub(super) decision_maker: Chain,
    pub(super) docket: Docket,
    pub(super) log: Vec<Entry>,
    pub(super) stances: Vec<(u32, Stance)>,
    /// Rounds in which both have spoken.
    pub(super) rounds_done: u32,
    /// Why it ended before its time.
    pub(super) failed: Option<FailureKind>,
    /// Messages that came without their form.
    pub(super) unstructured: u32,
    /// Rounds with a concession that nothing new was cited for, and what was conceded.
    pub(super) baseless: Vec<(u32, Vec<String>)>,
    pub(super) card: Option<Scorecard>,
    /// What the other side said last, as it is shown.
    said: String,
    /// Ids that the critic's last objections were given.
    recorded: Vec<String>,
    /// What was cited before this round, in the move or in this thread.
    cited: BTreeSet<String>,
    /// What was cited in this round.
    cited_now: BTreeSet<String>,
}

impl Thread {
    pub(super) fn new(seat: Seat, ids: ThreadIds, voice: Voice, cited: BTreeSet<String>) -> Self {
        Self {
            seat,
            ids,
            voice,
            critic: Chain::default(),
            decision_maker: Chain::default(),
            docket: Docket::default(),
            log: Vec::new(),
            stances: Vec::new(),
            rounds_done: 0,
            failed: None,
            unstructured: 0,
            baseless: Vec::new(),
            card: None,
            said: String::new(),
            recorded: Vec::new(),
            cited,
            cited_now: BTreeSet::new(),
        }
    }

    /// Whether it goes on.
    pub(super) fn is_live(&self) -> bool {
        self.failed.is_none()
    }

    /// What the decision maker said last, and the ids that the critic's objections before that were
    /// given.
    pub(super) fn to_critic(&self) -> (&[String], &str) {
        (&self.recorded, &self.said)
    }

    /// What the critic said last.
    pub(super) fn to_decision_maker(&self) -> &str {
        &self.said
    }

    /// The next request to the decision maker.
    pub(super) fn ask_decision_maker(
        &mut self,
        purpose: Purpose,
        asked: &PromptText,
    ) -> ModelRequest {
        let Self { decision_maker, voice, docket, stances, .. } = self;
        let summary = |first, last| prompt::summary(first, last, docket, stances);
        decision_maker.ask(voice, purpose, asked, summary)
    }

    /// The next request to the critic of this thread.
    pub(super) fn ask_critic(&mut self, voice: &Voice, asked: &PromptText) -> ModelRequest {
        let Self { critic, docket, stances, .. } = self;
        let summary = |first, last| prompt::summary(first, last, docket, stances);
        critic.ask(voice, Purpose::Critic, asked, summary)
    }

    /// The opening, which all threads share.
    pub(super) fn hear_opening(&mut self, asked: &PromptText, spoken: &Spoken<CriticTurn>) {
        let raised = match &spoken.turn {
            Some(turn) => {
                let (docket, raised) = Docket::opening(turn);
                self.docket = docket;
                Some((turn, raised))
            }
            None => None,
        };
        self.hear_critic(1, asked.clone(), spoken, raised);
    }

    /// The critic in a later round.
    pub(super) fn critic_speaks(
        &mut self,
        round: u32,
        asked: PromptText,
        spoken: &Spoken<CriticTurn>,
    ) {
        let raised = match &spoken.turn {
            Some(turn) => {
                let raised = self.docket.critic_speaks(&self.seat.id, turn, round);
                Some((turn, raised))
            }
            None => {
                self.unstructured += 1;
                None
            }
        };
        self.hear_critic(round, asked, spoken, raised);
    }

    fn hear_critic(
        &mut self,
        round: u32,
        asked: PromptText,
        spoken: &Spoken<CriticTurn>,
        raised: Option<(&CriticTurn, Raised)>,
    ) {
        self.critic.push(asked, spoken.raw.clone());
        self.note(CRITIC, round, spoken.message.clone());
        self.cited_now.extend(spoken.cites.iter().cloned());
        (self.said, self.recorded) = match raised {
            Some((turn, raised)) => {
                let said = prompt::critic_words(&spoken.message, &turn.objections, &raised);
                let new = raised.objections.into_iter().filter(|objection| objection.is_new);
                (said, new.map(|objection| objection.id).collect())
            }
            None => (spoken.message.clone(), Vec::new()),
        };
    }

    /// The decision maker, which ends the round.
    pub(super) fn decision_maker_speaks(
        &mut self,
        round: u32,
        asked: PromptText,
        spoken: &Spoken<DecisionMakerTurn>,
    ) {
        self.decision_maker.push(asked, spoken.raw.clone());
        let role = self.seat.id.clone();
        self.note(&role, round, spoken.message.clone());
        self.cited_now.extend(spoken.cites.iter().cloned());
        self.rounds_done = round;
        let nothing_new = self.cited_now.is_subset(&self.cited);
        self.cited.append(&mut self.cited_now);
        let Some(turn) = &spoken.turn else {
            self.unstructured += 1;
            self.said.clone_from(&spoken.message);
            return;
        };
        let answered = self.docket.decision_maker_speaks(turn);
        let gave_up = turn.stance == Stance::Concede
            && self.stances.last().is_none_or(|(_, before)| *before != Stance::Concede);
        if nothing_new && (gave_up || !answered.conceded.is_empty()) {
            self.baseless.push((round, answered.conceded.clone()));
        }
        self.stances.push((round, turn.stance));
        self.said = prompt::decision_maker_words(&spoken.message, turn, &answered);
    }

    fn note(&mut self, role: &str, round: u32, content: String) {
        self.log.push(Entry { role: role.to_owned(), content, round });
    }
}
