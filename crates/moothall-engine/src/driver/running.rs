//! A run while it is driven: who waits for what, what is under way, and whom a result belongs to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use moothall_core::consult::Review;
use moothall_core::model::FailureKind;
use moothall_core::receipt::Timing;
use moothall_core::{Effect, EffectId, EffectResult, Outcome, Step, Workflow};
use moothall_store::{JournalEntry, Wish};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::asked::{Answer, Asked, Asker};
use super::children::{Children, Started, Told, Wanted};
use super::desk::Desk;
use super::{Ended, Pause};
use crate::error::EngineError;
use crate::perform::Performed;

/// How often the driver looks whether another process wants the run to stop.
const LOOK_AROUND: Duration = Duration::from_millis(500);

/// An effect that was performed, and what came of it.
type Done = (Asked, Performed);

/// Children share the beginning of their prompts. Calls that go out together all pay for writing it
/// into the provider's cache; so one goes ahead, and the others read what it wrote.
#[derive(Debug, PartialEq, Eq)]
enum Ahead {
    Nobody,
    /// This call of a child is under way, and no other.
    Goes(EffectId),
    Arrived,
}

/// A run under way.
pub(super) struct Running {
    desk: Desk,
    /// What was answered before this driver came and nobody was told yet.
    journal: BTreeMap<EffectId, JournalEntry>,
    answers: VecDeque<Answer>,
    /// In the order in which they were asked for.
    waiting: VecDeque<Asked>,
    under_way: JoinSet<Done>,
    children: Children,
    ahead: Ahead,
    at_once: usize,
    pause: Option<Pause>,
    /// Whether somebody can let it go on after a pause.
    can_go_on: bool,
    /// What a person says to the next question.
    person_says: Option<Review>,
    /// A question that only a person can answer, and nobody did.
    question: Option<String>,
}

impl Running {
    pub(super) fn new(
        desk: Desk,
        journal: BTreeMap<EffectId, JournalEntry>,
        children: Children,
        at_once: usize,
    ) -> Self {
        Self {
            desk,
            journal,
            answers: VecDeque::new(),
            waiting: VecDeque::new(),
            under_way: JoinSet::new(),
            children,
            ahead: Ahead::Nobody,
            at_once,
            pause: None,
            can_go_on: true,
            person_says: None,
            question: None,
        }
    }

    pub(super) fn person_says(self, person_says: Option<Review>) -> Self {
        Self { person_says, ..self }
    }

    pub(super) fn can_go_on(self, can_go_on: bool) -> Self {
        Self { can_go_on, ..self }
    }

    pub(super) async fn drive(
        mut self,
        root: &mut (dyn Workflow + Send),
    ) -> Result<Ended, EngineError> {
        let first = root.start();
        if let Some(outcome) = self.root_stepped(None, first).await? {
            return Ok(Ended::Done(outcome));
        }
        // That it began is on record before anyone is asked anything.
        self.desk.write().await?;
        let mut look = tokio::time::interval(LOOK_AROUND);
        loop {
            // Answers that are there come first: a replay asks nobody, whatever was quick the last
            // time.
            while let Some(answer) = self.answers.pop_front() {
                let is_new = answer.entry.is_some();
                if let Some(outcome) = self.tell(root, answer).await? {
                    return Ok(Ended::Done(outcome));
                }
                // One debate does not wait until the others have heard their answers.
                if is_new {
                    self.start_calls();
                }
            }
            if self.pause.is_none() {
                self.start_children()?;
                if !self.answers.is_empty() {
                    continue;
                }
            }
            self.start_calls();
            self.desk.begin_writing();
            let is_written = self.desk.is_written();
            if self.pause.is_none() && is_written {
                self.start_effects(|_| true);
            }
            match (self.under_way.is_empty(), &self.pause) {
                (true, Some(why)) => {
                    self.desk.pause(why).await?;
                    return Ok(Ended::Paused(why.clone()));
                }
                // Whatever else there was to do is done.
                (true, None) if is_written && !self.children.are_busy() => {
                    let Some(words) = self.question.take() else {
                        return Err(EngineError::Stalled);
                    };
                    let why = Pause::Question(words);
                    self.desk.pause(&why).await?;
                    return Ok(Ended::Paused(why));
                }
                _ => {}
            }
            tokio::select! {
                Some(done) = self.under_way.join_next() => {
                    self.performed(done.map_err(|_| EngineError::Lost)?);
                    // Whatever else is there by now is written along.
                    while let Some(done) = self.under_way.try_join_next() {
                        self.performed(done.map_err(|_| EngineError::Lost)?);
                    }
                }
                told = self.children.hear() => self.heard(told.ok_or(EngineError::Lost)?),
                written = self.desk.written() => written?,
                _ = look.tick() => {
                    let wishes = self.desk.wishes().await?;
                    if wishes.contains(&Wish::Cancel) {
                        // Dropping the tasks stops their calls, and rooms end with theirs.
                        drop((self.under_way, self.children));
                        self.desk.cancel().await?;
                        return Ok(Ended::Cancelled);
                    }
                    if wishes.contains(&Wish::Pause) {
                        self.pause.get_or_insert(Pause::Person);
                    }
                    self.desk.tell_spent().await?;
                }
            }
        }
    }

    /// Tells a machine a result, and notes what follows.
    async fn tell(
        &mut self,
        root: &mut (dyn Workflow + Send),
        answer: Answer,
    ) -> Result<Option<Outcome>, EngineError> {
        let Answer { to, id, result, entry } = answer;
        let entry = entry.map(|entry| (id.clone(), entry));
        match to {
            Asker::Root => {
                let step = root.resume(&id, result)?;
                self.root_stepped(entry, step).await
            }
            Asker::Child(child) => {
                match self.children.resume(&child, &id, result)? {
                    Some(Step { perform, publish, outcome }) => {
                        self.desk.note(entry, publish, None);
                        self.child_stepped(child, perform, outcome)?;
                    }
                    // The child was given up while its call was under way. The answer is paid for.
                    None => self.desk.note(entry, Vec::new(), None),
                }
                Ok(None)
            }
        }
    }

    async fn root_stepped(
        &mut self,
        entry: Option<(EffectId, JournalEntry)>,
        step: Step,
    ) -> Result<Option<Outcome>, EngineError> {
        let Step { perform, publish, outcome } = step;
        self.desk.note(entry, publish, outcome.as_ref());
        if outcome.is_some() {
            self.desk.write().await?;
        } else {
            let asked = self.unanswered(&Asker::Root, perform)?;
            self.release(asked);
        }
        Ok(outcome)
    }

    fn child_stepped(
        &mut self,
        child: EffectId,
        perform: Vec<(EffectId, Effect)>,
        outcome: Option<Outcome>,
    ) -> Result<(), EngineError> {
        let asked = self.unanswered(&Asker::Child(child.clone()), perform)?;
        let told = self.children.stepped(&child, asked, outcome);
        self.heard(told);
        Ok(())
    }

    /// What the journal answers is answered; the rest is returned.
    fn unanswered(
        &mut self,
        by: &Asker,
        perform: Vec<(EffectId, Effect)>,
    ) -> Result<Vec<Asked>, EngineError> {
        let mut open = Vec::new();
        for (id, effect) in perform {
            let asked = effect.request_hash()?;
            match self.journal.remove(&id) {
                None => open.push(Asked { by: by.clone(), id, request_sha256: asked, effect }),
                Some(entry) if entry.request_sha256 == asked => self.answers.push_back(Answer {
                    to: by.clone(),
                    id,
                    result: entry.result,
                    entry: None,
                }),
                Some(entry) => {
                    let answered = entry.request_sha256;
                    return Err(EngineError::JournalMismatch { id, asked, answered });
                }
            }
        }
        Ok(open)
    }

    /// Effects that may be performed as soon as there is room for them.
    fn release(&mut self, asked: Vec<Asked>) {
        for Asked { by, id, request_sha256, effect } in asked {
            match effect {
                Effect::StartChild(request) => {
                    self.children.want(Wanted { by, id, request_sha256, request });
                }
                Effect::AskPerson(question) => match self.person_says.take() {
                    Some(review) => {
                        let result = EffectResult::PersonSaid(Box::new(review));
                        // The person took their time, but nobody waited for it.
                        let timing = Timing { latency_ms: 0, tries: 1 };
                        let entry = JournalEntry { request_sha256, result: result.clone(), timing };
                        self.answers.push_back(Answer { to: by, id, result, entry: Some(entry) });
                    }
                    None => self.question = Some(question.words()),
                },
                effect => self.waiting.push_back(Asked { by, id, request_sha256, effect }),
            }
        }
    }

    fn start_children(&mut self) -> Result<(), EngineError> {
        while let Some(started) = self.children.start_next() {
            match started {
                Started::Lives(child, Step { perform, publish, outcome }) => {
                    self.desk.note(None, publish, None);
                    self.child_stepped(child, perform, outcome)?;
                }
                Started::Ended(answer) => self.answers.push_back(answer),
            }
        }
        Ok(())
    }

    /// Calls go out while the answers that led to them are still being written. Should we be killed in
    /// between, both are asked again; a call alone changes nothing in the world.
    fn start_calls(&mut self) {
        if self.pause.is_none() {
            self.start_effects(|effect| matches!(effect, Effect::CallModel(_)));
        }
    }

    /// Starts what may be started, in the order in which it was asked for.
    fn start_effects(&mut self, may_start: fn(&Effect) -> bool) {
        while self.under_way.len() < self.at_once
            && let Some(asked) = self.next_to_start(may_start)
        {
            let performer = Arc::clone(self.desk.performer());
            let name = asked.id.as_str();
            tracing::debug!(target: "moothall::run", effect = name, "effect started");
            let span = tracing::info_span!(target: "moothall::run", "effect", effect_id = name);
            let performing = async move {
                let performed = performer.perform(&asked.id, &asked.effect).await;
                (asked, performed)
            };
            self.under_way.spawn(performing.instrument(span));
        }
    }

    fn next_to_start(&mut self, may_start: fn(&Effect) -> bool) -> Option<Asked> {
        let waits = matches!(self.ahead, Ahead::Goes(_));
        let mut waiting = self.waiting.iter();
        let next = waiting.position(|Asked { by, effect, .. }| {
            may_start(effect) && (*by == Asker::Root || !waits)
        })?;
        let asked = self.waiting.remove(next)?;
        if asked.by != Asker::Root && self.ahead == Ahead::Nobody {
            self.ahead = Ahead::Goes(asked.id.clone());
        }
        Some(asked)
    }

    fn performed(&mut self, (asked, performed): Done) {
        let Asked { by: to, id, request_sha256, effect } = asked;
        if matches!(&self.ahead, Ahead::Goes(first) if *first == id) {
            self.ahead = Ahead::Arrived;
        }
        let Performed { result, timing } = performed;
        match (effect, result) {
            (Effect::CallModel(request), EffectResult::ModelFailed(failure))
                if self.waits_for_cure(failure.kind) =>
            {
                self.pause = Some(Pause::for_cure_of(request.model, failure));
            }
            (_, result) => {
                let entry = Some(JournalEntry { request_sha256, result: result.clone(), timing });
                self.answers.push_back(Answer { to, id, result, entry });
            }
        }
    }

    /// What only a person can cure is not an answer: it is not kept, and the workflow never hears of
    /// it. Once it is cured the same question is asked.
    fn waits_for_cure(&self, kind: FailureKind) -> bool {
        kind.waits_for_cure() && (self.can_go_on || kind == FailureKind::OverBudget)
    }

    fn heard(&mut self, told: Told) {
        let Told { released, ended } = told;
        self.release(released);
        self.answers.extend(ended);
    }
}
