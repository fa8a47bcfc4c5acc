//! `hapax pause` and `hapax resume`: a word in the state store that workers hear with their next heartbeat.

use hapax_engine::books::{Pause, StateBooks as _};
use hapax_model::units::{parse_duration, print_duration};
use serde_json::json;

use super::{known_workflow, load, print_json};
use crate::assemble::{AnyBooks, AnyState, Purpose};
use crate::cli::{PauseArgs, ResumeArgs, Shared};
use crate::config::{Config, StateUrl};
use crate::exit::{Failure, USAGE};
use crate::roster::now_ms;

/// Pauses a workflow, whether a worker is alive or not.
pub(crate) async fn pause(args: &PauseArgs, shared: &Shared) -> Result<u8, Failure> {
    let config = load(shared)?.config;
    known_workflow(&config, &args.workflow)?;
    refuse_stateless(&config, "pause")?;
    let since_ms = now_ms();
    let until_ms = match &args.lasting {
        Some(text) => {
            let wrong = |why: String| Failure::new("HX5001", format!("--for {text}: {why}")).with_exit(USAGE);
            let lasting = parse_duration(text).map_err(|error| wrong(error.to_string()))?;
            Some(since_ms.saturating_add(u64::try_from(lasting.as_millis()).unwrap_or(u64::MAX)))
        }
        None => None,
    };
    let by = hapax_sql::process::session_name();
    let pause = Pause { why: args.why.clone(), until_ms, ..Pause::new(&args.workflow, &by, since_ms) };
    // Opening the store makes it, where it is a file that no worker has made yet.
    drop(AnyState::open(&config).await?);
    let mut books = AnyBooks::of_state(&config, Purpose::Change).await?.ok_or_else(gone)?;
    books.pause(&pause).await?;
    if shared.json {
        print_json(&json!({"workflow": pause.workflow, "paused": true, "sinceMs": since_ms, "untilMs": until_ms}));
    } else {
        let lasting = until_ms.map(|until| std::time::Duration::from_millis(until - since_ms));
        let end = lasting.map_or_else(|| "until it is resumed".to_owned(), |it| format!("for {}", print_duration(it)));
        println!("{} is paused {end}. Its workers deliver what they have read and then rest.", pause.workflow);
    }
    Ok(0)
}

/// Lets a workflow go on.
pub(crate) async fn resume(args: &ResumeArgs, shared: &Shared) -> Result<u8, Failure> {
    let config = load(shared)?.config;
    known_workflow(&config, &args.workflow)?;
    refuse_stateless(&config, "resume")?;
    let was_paused = match AnyBooks::of_state(&config, Purpose::Change).await? {
        Some(mut books) => books.resume(&args.workflow).await?,
        None => false,
    };
    if shared.json {
        print_json(&json!({"workflow": args.workflow, "paused": false, "wasPaused": was_paused}));
    } else if was_paused {
        println!("{} goes on.", args.workflow);
    } else {
        println!("{} was not paused.", args.workflow);
    }
    Ok(0)
}

/// Workers hear of a pause through the state store, and through nothing else.
fn refuse_stateless(config: &Config, command: &str) -> Result<(), Failure> {
    if config.state != StateUrl::None {
        return Ok(());
    }
    let message = format!(
        "`hapax {command}` speaks to workers through the state store, and `state` is none: name a state store, or end \
         the worker with SIGTERM, which loses nothing"
    );
    Err(Failure::new("HX5063", message).with_exit(USAGE))
}

fn gone() -> Failure {
    Failure::new("HX5063", "the state store was removed while it was opened")
}
