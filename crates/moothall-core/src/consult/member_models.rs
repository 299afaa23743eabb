//! Which model each member of a consultation uses: its own, else that of its role.

use std::collections::BTreeMap;

use super::committee::{Committee, CommitteeMember, InferenceAgent};
use super::fork::ForkPoint;
use super::input::{ConsultInput, RoleModels};
use crate::model::{CallPurpose, ModelList, ModelName};

/// Roles to which a model can be assigned.
const INFERENCE: &str = "inference";
const ANALYST: &str = "analyst";
const CRITIC: &str = "critic";
const DECISION_MAKER: &str = "decision-maker";
const PANEL: &str = "panel";

/// Ids of the inference agents.
const F1: &str = "F1";
const F2: &str = "F2";

/// Number of inference agents.
const AGENTS: usize = 2;

/// Why a model cannot be assigned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemberModelError {
    /// No role or member has this name.
    #[error("unknown member `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// All names, roles first.
        known: Vec<String>,
    },
    /// A name is given twice.
    #[error("`{0}` has two models")]
    Repeated(String),
}

impl RoleModels {
    /// Assigns models to roles and members by name. A role's model replaces the models that the
    /// committee has for its members; a member's model takes precedence over its role's.
    pub fn assign(
        &mut self,
        committee: &mut Committee,
        named: &[(String, ModelList)],
    ) -> Result<(), MemberModelError> {
        let mut by_name = BTreeMap::new();
        for (name, model) in named {
            if by_name.insert(name.as_str(), model).is_some() {
                return Err(MemberModelError::Repeated(name.clone()));
            }
        }
        let mut members = Vec::new();
        for (name, model) in by_name {
            if !self.assign_role(committee, name, model) {
                members.push((name, model));
            }
        }
        for (name, model) in members {
            if !assign_member(committee, name, model) {
                let known = names(committee);
                return Err(MemberModelError::Unknown { name: name.to_owned(), known });
            }
        }
        Ok(())
    }

    fn assign_role(&mut self, committee: &mut Committee, name: &str, model: &ModelList) -> bool {
        let model = Some(model.clone());
        let clear = |members: &mut [CommitteeMember]| {
            members.iter_mut().for_each(|member| member.model = None);
        };
        match name {
            INFERENCE => {
                (committee.inference.f1, committee.inference.f2) = (None, None);
                self.inference = model;
            }
            ANALYST => {
                clear(&mut committee.analysts);
                self.analyst = model;
            }
            CRITIC => {
                committee.critic.model = None;
                self.critic = model;
            }
            DECISION_MAKER => {
                clear(&mut committee.decision_makers);
                self.decision_maker = model;
            }
            PANEL => {
                committee.panel.iter_mut().for_each(|member| member.model.clone_from(&model));
            }
            _ => return false,
        }
        true
    }

    /// Whether a member uses the default model. The panel is not included: every run has one, also
    /// if a committee names models for all others.
    pub fn needs_default(&self, committee: &Committee) -> bool {
        let inference = &committee.inference;
        let has_own = |members: &[CommitteeMember]| members.iter().all(|one| one.model.is_some());
        let covered = [
            self.inference.is_some() || (inference.f1.is_some() && inference.f2.is_some()),
            self.analyst.is_some() || has_own(&committee.analysts),
            self.critic.is_some() || committee.critic.model.is_some(),
            self.decision_maker.is_some() || has_own(&committee.decision_makers),
        ];
        covered.contains(&false)
    }
}

fn assign_member(committee: &mut Committee, name: &str, model: &ModelList) -> bool {
    match name {
        F1 => committee.inference.f1 = Some(InferenceAgent { model: model.clone() }),
        F2 => committee.inference.f2 = Some(InferenceAgent { model: model.clone() }),
        _ => {
            let Committee { analysts, critic, decision_makers, panel, .. } = committee;
            let mut members =
                analysts.iter_mut().chain([critic]).chain(decision_makers).chain(panel);
            let Some(member) = members.find(|member| member.id == name) else { return false };
            member.model = Some(model.clone());
        }
    }
    true
}

/// Every name that can be given a model.
fn names(committee: &Committee) -> Vec<String> {
    let has_panel = !committee.panel.is_empty();
    let roles = [INFERENCE, ANALYST, CRITIC, DECISION_MAKER].into_iter();
    let fixed = roles.chain(has_panel.then_some(PANEL)).chain([F1, F2]).map(str::to_owned);
    let Committee { analysts, critic, decision_makers, panel, .. } = committee;
    let members = analysts.iter().chain([critic]).chain(decision_makers).chain(panel);
    let members = members.map(|one| one.id.clone());
    fixed.chain(members.filter(|id| id != CRITIC)).collect()
}

impl Committee {
    /// The models that the committee itself names.
    pub fn own_models(&self) -> impl Iterator<Item = &ModelList> {
        let agents = [&self.inference.f1, &self.inference.f2].into_iter().flatten();
        let members = self.analysts.iter().chain([&self.critic]).chain(&self.decision_makers);
        let members = members.chain(&self.panel);
        agents.map(|agent| &agent.model).chain(members.filter_map(|one| one.model.as_ref()))
    }
}

impl ConsultInput {
    /// Model of an inference agent, or of the generator of its synthetic data.
    pub(crate) fn inference_model(&self, purpose: CallPurpose) -> &ModelList {
        let agents = &self.committee.inference;
        let agent = match purpose {
            CallPurpose::InferTrend | CallPurpose::SynthesizeNews => &agents.f2,
            _ => &agents.f1,
        };
        agent.as_ref().map_or_else(|| self.models.inference(), |agent| &agent.model)
    }

    /// Model of an analyst.
    pub(crate) fn analyst_model<'a>(&'a self, analyst: &'a CommitteeMember) -> &'a ModelList {
        own_or_role(analyst, self.models.analyst())
    }

    /// Model of the critic.
    pub(crate) fn critic_model(&self) -> &ModelList {
        own_or_role(&self.committee.critic, self.models.critic())
    }

    /// Model of a decision maker.
    pub(crate) fn decision_maker_model<'a>(&'a self, maker: &'a CommitteeMember) -> &'a ModelList {
        own_or_role(maker, self.models.decision_maker())
    }

    /// Model of a panel member.
    pub(crate) fn panel_model<'a>(&'a self, member: &'a CommitteeMember) -> &'a ModelList {
        own_or_role(member, &self.models.default)
    }

    /// The preferred model of each panel member, by name.
    pub fn panel_model_names(&self) -> Vec<String> {
        self.panel_models().iter().map(|(_, models)| models.first().to_string()).collect()
    }

    /// The analysts that propose moves in this run, with the number of their moves.
    pub(crate) fn called_analysts(&self) -> Vec<(&CommitteeMember, u32)> {
        let shares = self.committee.shares(self.moves);
        let analysts = self.committee.analysts.iter().zip(shares);
        analysts.filter(|(_, share)| *share > 0).collect()
    }

    /// Every member that is called, with its model, in the order of the stages.
    pub fn member_models(&self) -> Vec<(&str, &ModelList)> {
        let agents = [(F1, CallPurpose::InferFinancial), (F2, CallPurpose::InferTrend)];
        let agents = agents.map(|(id, purpose)| (id, self.inference_model(purpose)));
        let analysts = self.called_analysts();
        let analysts =
            analysts.into_iter().map(|(one, _)| (one.id.as_str(), self.analyst_model(one)));
        let critic = (self.committee.critic.id.as_str(), self.critic_model());
        let makers = self.committee.decision_makers.iter();
        let makers = makers.map(|one| (one.id.as_str(), self.decision_maker_model(one)));
        let members = agents.into_iter().chain(analysts).chain([critic]).chain(makers);
        members.chain(self.panel_models()).collect()
    }

    /// The members of the panel, with their models.
    pub(crate) fn panel_models(&self) -> Vec<(&str, &ModelList)> {
        let panel = self.committee.panel.iter();
        panel.map(|one| (one.id.as_str(), self.panel_model(one))).collect()
    }

    /// All models in use, with fallbacks, without duplicates.
    pub fn distinct_models(&self) -> Vec<&ModelName> {
        self.models_from(None)
    }

    /// The models that this run calls itself, with fallbacks, without duplicates.
    pub fn called_models(&self) -> Vec<&ModelName> {
        self.models_from(self.parent.as_ref().map(|parent| parent.from))
    }

    /// The models that a run calls if it starts at this point, without duplicates. A fork does not
    /// call the models of the stages before it.
    pub fn models_from(&self, from: Option<ForkPoint>) -> Vec<&ModelName> {
        let members = self.member_models();
        let reused = match from {
            None => 0,
            Some(ForkPoint::Moves) => AGENTS,
            Some(ForkPoint::Debates) => AGENTS + self.called_analysts().len(),
        };
        distinct(members.into_iter().skip(reused).flat_map(|(_, models)| models.iter()))
    }

    /// The models of the analysts, with fallbacks, without duplicates.
    pub fn analyst_models(&self) -> Vec<&ModelName> {
        let analysts = self.called_analysts().into_iter();
        distinct(analysts.flat_map(|(analyst, _)| self.analyst_model(analyst).iter()))
    }

    /// The preferred model of every member, for the receipt; empty if no member has a model of its
    /// own and fallbacks are not set, as in runs of earlier versions.
    pub fn receipt_models(&self) -> BTreeMap<String, ModelName> {
        let members = self.member_models();
        let has_fallbacks = members.iter().any(|(_, models)| !models.fallbacks().is_empty());
        if self.committee.own_models().next().is_none() && !has_fallbacks {
            return BTreeMap::new();
        }
        let models = members.into_iter();
        models.map(|(member, models)| (member.to_owned(), models.first().clone())).collect()
    }
}

fn distinct<'a>(models: impl Iterator<Item = &'a ModelName>) -> Vec<&'a ModelName> {
    let mut models: Vec<_> = models.collect();
    models.sort();
    models.dedup();
    models
}

fn own_or_role<'a>(member: &'a CommitteeMember, of_role: &'a ModelList) -> &'a ModelList {
    member.model.as_ref().unwrap_or(of_role)
}

/// The models with the members that use them, such as `demo (F1, F2), openai/gpt-5-mini (critic)`;
/// only the name if all use the same one.
pub fn group_by_model(members: &[(&str, &ModelList)]) -> String {
    let mut groups: Vec<(&ModelList, Vec<&str>)> = Vec::new();
    for (member, model) in members {
        match groups.iter_mut().find(|(known, _)| known == model) {
            Some((_, ids)) => ids.push(member),
            None => groups.push((model, vec![member])),
        }
    }
    match groups.as_slice() {
        [(only, _)] => only.to_string(),
        several => {
            let group =
                |(model, ids): &(&ModelList, Vec<&str>)| format!("{model} ({})", ids.join(", "));
            several.iter().map(group).collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
#[path = "member_models_tests.rs"]
mod tests;
