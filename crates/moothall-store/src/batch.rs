//! Admission of batches of calls for runs with several workers.

use std::collections::{BTreeMap, BTreeSet};

use moothall_core::EffectId;
use moothall_core::budget::{BudgetAccount, ReserveDecision, ReserveRequest};

use crate::prepared_commit::{PreparedCommit, text};
use crate::rows::json;
use crate::{ControlRequest, JournalEntry, RunCommit, StoreError};

/// A request to start a batch of calls: earlier events to publish, and a budget reservation.
#[derive(Debug, Clone)]
pub struct BatchStart {
    /// Published first.
    pub commit: RunCommit,
    /// The effects to be performed.
    pub effects: Vec<EffectId>,
    /// The maximum they can use.
    pub reserve: ReserveRequest,
}

/// The state of a run when a batch is about to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchAdmission {
    /// The pending control requests.
    pub control_requests: BTreeSet<ControlRequest>,
    /// Existing results of these effects, for example from a worker that died halfway.
    pub entries: BTreeMap<EffectId, JournalEntry>,
    /// The budget decision; `None` if there was a control request or a result, because then nothing
    /// is reserved.
    pub reservation: Option<ReserveDecision>,
}

/// A run's budget account while its row is locked.
#[derive(Debug)]
pub(crate) struct BudgetSession<'a> {
    stored: Option<&'a str>,
    /// Parsed on first use.
    account: Option<BudgetAccount>,
    spent: Option<String>,
}

/// Changed budget columns of a run's row; `None` if unchanged.
#[derive(Debug, Default)]
pub(crate) struct BudgetUpdate {
    pub(crate) spent: Option<String>,
    pub(crate) account: Option<String>,
}

impl<'a> BudgetSession<'a> {
    pub(crate) fn open(stored: Option<&'a str>) -> Self {
        Self { stored, account: None, spent: None }
    }

    /// Reserves budget. The spending itself is updated on settlement.
    pub(crate) fn reserve(
        &mut self,
        request: &ReserveRequest,
    ) -> Result<ReserveDecision, StoreError> {
        Ok(self.account()?.reserve(request))
    }

    /// Applies the budget part of a commit.
    pub(crate) fn apply(&mut self, prepared: &PreparedCommit) -> Result<(), StoreError> {
        match &prepared.commit.settlement {
            Some(settlement) => {
                let account = self.account()?;
                account.settle(settlement);
                self.spent = Some(text("an amount", &account.with_reservations())?);
            }
            None => self.spent = prepared.spent.clone().or_else(|| self.spent.take()),
        }
        Ok(())
    }

    /// Returns the columns that differ from the stored ones. A changed amount alone is worth a
    /// write, because it changes while a call is in progress; a repeated commit changes nothing.
    pub(crate) fn close(self, spent: Option<&str>) -> Result<BudgetUpdate, StoreError> {
        let account = self.account.map(|account| text("an account", &account)).transpose()?;
        Ok(BudgetUpdate {
            spent: self.spent.filter(|updated| Some(updated.as_str()) != spent),
            account: account.filter(|updated| Some(updated.as_str()) != self.stored),
        })
    }

    fn account(&mut self) -> Result<&mut BudgetAccount, StoreError> {
        let account = match (self.account.take(), self.stored) {
            (Some(account), _) => account,
            (None, Some(stored)) => json("account", stored)?,
            (None, None) => BudgetAccount::default(),
        };
        Ok(self.account.insert(account))
    }
}

impl BudgetUpdate {
    pub(crate) fn has_changes(&self) -> bool {
        self.spent.is_some() || self.account.is_some()
    }
}
