//! `moothall fork`: starts a consultation from the results of an earlier one.

use moothall_core::RunSpec;
use moothall_core::access::RunOwner;
use moothall_core::consult::ForkPoint;
use moothall_engine::RunRecord;
use moothall_store::NewRun;

use super::screen::lock_screen;
use super::{
    ConsultOutputFiles, consent, introduce, progress_on, screen, show_isolation_notice, start,
    with_screen,
};
use crate::args::{ForkArgs, GlobalArgs};
use crate::commands::runtime;
use crate::demo_delay::DemoDelay;
use crate::error::CliExit;
use crate::launch::run_speed::RunSpeed;
use crate::launch::{ConsultForkRequest, ConsultPlan, PreparedRun, RunFiles};
use crate::run_store::{self, open_and_find};
use crate::terminal::{self, DIM};
use crate::{config, logging};

pub(crate) fn run(global: &GlobalArgs, args: &ForkArgs) -> anyhow::Result<CliExit> {
    // Needed only to find the run; the fork has its own settings.
    let loaded = config::load(global.config.as_deref(), toml::Table::new())?;
    runtime()?.block_on(async {
        let (local, parent) = open_and_find(&loaded, &args.run).await?;
        let request = ConsultForkRequest::from_args(args, &loaded, &parent)?;
        let mut context = request.context(global.config.as_deref(), &parent)?;
        logging::start(&context.loaded.resolved.config.log, global.verbose);
        let record =
            RunRecord::read(&*local.store, &parent.run_id).await.map_err(run_store::store_error)?;
        let mut fork = request.plan(&context, &record)?;
        if args.estimate {
            let speed = RunSpeed::of_earlier_runs(&context.loaded, &fork.plan.spec.input).await;
            fork.plan.estimate.speed = speed;
        }
        let ConsultPlan { spec, estimate, cap, .. } = &fork.plan;
        if args.estimate {
            terminal::print(&estimate.render(*cap, &[], args.output.json))?;
            return Ok(CliExit::Fine);
        }
        let screen = screen(spec, args.output.json);
        context.progress = progress_on(&screen);
        let uploads = RunFiles::load(&*local.store, &parent.run_id, &spec.settings).await?;
        let opening = PreparedRun::open_with(&context, RunSpec::Consult(spec.clone()), &uploads);
        let prepared = with_screen(&screen, "checking sandboxes", opening).await?;
        lock_screen(&screen).hide();
        show_isolation_notice(&prepared, &screen, args.output.json);
        introduce(spec, fork.evidence(), estimate, *cap, args.output.json);
        if !args.output.json {
            let (id, from) = (run_store::short_id(&parent.run_id), ForkPoint::from(args.from));
            let reused = fork.inherited.len();
            terminal::note(&format!(
                "{DIM}fork of {id} from the {from}: {reused} results reused{DIM:#}\n"
            ));
        }
        if spec.settings.replay.is_none() {
            consent(&context, estimate, args.yes, "use fewer rounds with `--set rounds=N`").await?;
        }
        let files = ConsultOutputFiles::from(&args.output);
        let new = prepared.new_run(fork.evidence())?;
        // The results of a team stay with that team.
        let owner = RunOwner { team: parent.owner.team.clone(), token: None };
        let new = NewRun { inherited: fork.inherited, owner, ..new };
        // Boxed because the future is large.
        let plan = (spec, *cap, DemoDelay::NONE);
        Box::pin(start(&context, &local, &prepared, (new, uploads), plan, &screen, &files)).await
    })
}
