//! A consultation that nobody sits in front of: started and driven for a server. What is planned,
//! looked for and driven is what the command plans, looks for and drives.

use std::sync::Arc;

use moothall_core::RunId;
use moothall_core::consult::{Consult, Review};
use moothall_engine::{Ended, RunRecord};
use moothall_models::{Budget, Ledger};
use moothall_store::{NewRun, RunRow, Store, StoredEvent};
use serde_json::Value;

use super::drive::{broken, driver, workflow};
use super::estimate::{Bill, Cap};
use super::kept::{Kept, Settings};
use super::prepare::Ready;
use super::{changes, input, title};
use crate::args::ConsultArgs;
use crate::context::Context;
use crate::error::CliError;
use crate::local;
use crate::pace::Pace;

/// What shall be done, and what it takes.
pub(in crate::commands) struct Planned {
    kept: Kept,
    bill: Bill,
    cap: Cap,
}

impl Planned {
    /// What the arguments ask for. `brief` is words, never the name of a file.
    pub(in crate::commands) fn new(
        context: &Context,
        args: &ConsultArgs,
        brief: Option<String>,
    ) -> Result<Self, CliError> {
        let mut settings = Settings::from_args(args)?;
        let mut consult = input::input(context, args)?;
        consult.terms.brief = brief;
        consult.validate().map_err(input::refusal)?;
        let bill = Bill::of(&context.catalog, &consult);
        let cap = bill.cap(context.budget());
        // The budget that holds is kept: whoever resumes the run has it too.
        let Budget { usd, tokens } = cap.budget();
        (settings.budget_micro_usd, settings.budget_tokens) = (usd, tokens);
        Ok(Self { kept: Kept { consult, settings }, bill, cap })
    }

    /// What it takes, as `moothall consult --estimate --json` says it.
    pub(in crate::commands) fn estimate(&self) -> Value {
        self.bill.json(self.cap)
    }

    /// Finds everything that it needs, and whom it is about.
    pub(in crate::commands) async fn open(self, context: &Context) -> Result<Opened, CliError> {
        let ready = Ready::find(context, &self.kept).await?;
        let evidence = ready.preflight(&self.kept.consult).await?;
        let title = title(&self.kept.consult, evidence.as_ref());
        let model = &self.kept.consult.models.default;
        let input = serde_json::to_value(&self.kept)
            .map_err(|error| CliError::failed("the run cannot be written").with_source(error))?;
        let new = local::new_run(Consult::NAME, &title, model, input)?;
        let ledger = Ledger::new(self.cap.budget());
        Ok(Opened { kept: self.kept, ready, ledger, says: None, new: Some(new) })
    }
}

/// A consultation that can be driven.
pub(in crate::commands) struct Opened {
    kept: Kept,
    ready: Ready,
    ledger: Ledger,
    says: Option<Review>,
    new: Option<NewRun>,
}

impl Opened {
    /// One that stands still. A person who lets it go on without a word lets its moves stand.
    pub(in crate::commands) async fn again(
        context: &Context,
        kept: Kept,
        store: &dyn Store,
        row: &RunRow,
    ) -> Result<Self, CliError> {
        let ready = Ready::find(context, &kept).await?;
        let record = RunRecord::read(store, &row.run_id).await.map_err(local::broken)?;
        let says = match record.waits_for_person() {
            true => Some(Review { changes: changes(store, &record).await? }),
            false => None,
        };
        let settings = &kept.settings;
        let budget = Budget { usd: settings.budget_micro_usd, tokens: settings.budget_tokens };
        let ledger = Ledger::resume(budget, row.spent.unwrap_or_default());
        Ok(Self { kept, ready, ledger, says, new: None })
    }

    /// The run that is to be made, once.
    pub(in crate::commands) fn take_new(&mut self) -> Option<NewRun> {
        self.new.take()
    }

    /// Gives back what it needs: somebody else drives it.
    pub(in crate::commands) async fn leave(self) {
        self.ready.shut_down().await;
    }

    /// Drives it to where it stops. The caller holds its lock.
    pub(in crate::commands) async fn drive(
        self,
        store: &Arc<dyn Store>,
        run_id: &RunId,
        pace: Pace,
        heard: impl FnMut(&StoredEvent) + Send + 'static,
    ) -> Result<Ended, CliError> {
        let Self { kept, ready, ledger, says, .. } = self;
        ready.expect();
        let mut workflow = workflow(&kept)?;
        let driver = driver(&ready, store, run_id, &kept, ledger, pace);
        let driver = driver.person_says(says).heed_pause().on_event(heard);
        // Boxed: hundreds of calls under way are large.
        let ended = Box::pin(driver.drive(&mut workflow)).await.map_err(broken);
        ready.shut_down().await;
        ended
    }
}
