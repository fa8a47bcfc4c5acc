//! `hapax reset`: a person moves a delivery, accepts a change, or gives a renamed workflow its progress.

mod begins;

use std::collections::BTreeMap;

use hapax_connect::file::many::unpacked_name;
use hapax_connect::file::{Accepted, FileSource, with_end, without_end};
use hapax_engine::books::{Books as _, OldNames, StateBooks as _};
use hapax_engine::source::{Held, Source as _, SourceError, StartAt};
use hapax_model::contract::Contract;
use hapax_model::position::{Bookmark, DeliveryId, Incarnation, Position};
use hapax_model::progress::Progress;

use self::begins::Begins;
use super::{confirmed, known_workflow, load};
use crate::assemble::{
    AnyBooks, AnySource, AnyState, Part, Purpose, find_files, is_copy_of_read, known_lanes, lanes, lanes_gone_back,
    parts,
};
use crate::cli::{ResetArgs, Shared};
use crate::config::Config;
use crate::exit::{Failure, USAGE};

/// Moves deliveries.
pub(crate) async fn reset(args: &ResetArgs, shared: &Shared) -> Result<u8, Failure> {
    let mut loaded = load(shared)?;
    find_files(&mut loaded.config).await;
    known_workflow(&loaded.config, &args.workflow)?;
    let chosen: Vec<Part<'_>> = lanes(&loaded.config)
        .filter(|part| part.workflow.id == args.workflow)
        .filter(|part| args.sink.as_ref().is_none_or(|sink| *sink == part.sink.name))
        .filter(|part| args.lane.as_ref().is_none_or(|lane| *lane == part.id().lane))
        .collect();
    let chosen = less_read_copies(args, chosen, &loaded.config).await?;
    let gone = lanes_without_anything(args, &chosen, &loaded.config).await?;
    if chosen.is_empty() && gone.is_empty() {
        return Err(usage(format!("no complete workflow \"{}\" with that sink and lane is configured", args.workflow)));
    }
    match (&args.adopt, &args.adopt_lane) {
        (Some(old), _) => adopt(args, old, &chosen, &loaded.config).await,
        (None, Some(old)) => adopt_lane(args, old, &chosen, &loaded.config).await,
        (None, None) if args.accept || args.to.is_some() => move_to(args, &chosen, &gone, &loaded.config).await,
        (None, None) => {
            Err(usage("say what to do: --to POSITION, --accept, --adopt OLD, or --lane NEW --adopt-lane OLD".into()))
        }
    }
}

/// Without compressed copies of files that were read to their end: a run passes them over, and so does who moves a whole workflow.
/// One that is named with `--lane` is meant.
async fn less_read_copies<'a>(
    args: &ResetArgs,
    chosen: Vec<Part<'a>>,
    config: &Config,
) -> Result<Vec<Part<'a>>, Failure> {
    let moves = (args.accept || args.to.is_some()) && args.adopt.is_none() && args.adopt_lane.is_none();
    if !moves || args.lane.is_some() {
        return Ok(chosen);
    }
    let (mut kept, mut known) = (Vec::new(), BTreeMap::new());
    for part in chosen {
        let id = part.id();
        if part.file.is_some() && !known.contains_key(&id.sink) {
            known.insert(id.sink.clone(), known_lanes(&part, config).await?);
        }
        match known.get(&id.sink).and_then(|known| read_as(&part, known)) {
            Some(original) => {
                println!(
                    "{id}: passed over, a compressed copy of {original}, which was read to its end: nothing to read"
                );
            }
            None => kept.push(part),
        }
    }
    Ok(kept)
}

/// What a person should know of a file without progress that another lane of the pattern has delivered.
async fn delivered_elsewhere(part: &Part<'_>, config: &Config) -> Result<Option<String>, Failure> {
    let Some(lane) = part.file else { return Ok(None) };
    let known = known_lanes(part, config).await?;
    if let Some(original) = read_as(part, &known) {
        let what =
            format!("it is a compressed copy of {original}, which was read to its end: all of it is delivered again");
        return Ok(Some(what));
    }
    let mut source = part.open_source();
    for (other, at) in known.iter().filter(|(other, _)| **other != lane.name) {
        if source.reads_what(other, at).await? {
            let what =
                format!("it holds what {other} has delivered, up to position {}: that is delivered again", at.position);
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// The lane that has read all of a file which has no progress under its own name: that one was compressed since.
fn read_as<'a>(part: &Part<'_>, known: &'a BTreeMap<String, Bookmark>) -> Option<&'a str> {
    let lane = part.file.filter(|lane| !known.contains_key(&lane.name))?;
    let (original, _) = known.get_key_value(unpacked_name(&lane.name)?)?;
    is_copy_of_read(part, lane, known).then_some(original)
}

fn usage(message: String) -> Failure {
    Failure::new("HX5001", message).with_exit(USAGE)
}

fn no_books(part: &Part<'_>) -> Failure {
    usage(format!("workflow {} has no database yet that could hold its progress", part.workflow.id))
}

async fn adopt(args: &ResetArgs, old: &str, chosen: &[Part<'_>], config: &Config) -> Result<u8, Failure> {
    println!("{} takes over the progress and dead letters of {old}; a worker of {old} is fenced.", args.workflow);
    if !confirmed(args.doing, "Do it?")? {
        return Ok(0);
    }
    // All lanes of a sink move together.
    let mut sinks: Vec<&str> = Vec::new();
    for part in chosen {
        if sinks.contains(&part.sink.name.as_str()) {
            continue;
        }
        sinks.push(&part.sink.name);
        let mut books = AnyBooks::of_part(part, config, Purpose::Change).await?.ok_or_else(|| no_books(part))?;
        let lanes = books.adopt(old, &args.workflow, &part.sink.name).await?;
        if let Some(mut state) = AnyBooks::of_state(config, Purpose::Change).await? {
            state.adopt_memory(old, &args.workflow, &part.sink.name).await?;
        }
        println!("{}/{}: {lanes} lane(s) taken over", part.workflow.id, part.sink.name);
    }
    Ok(0)
}

/// A lane goes on where another one ended: its file was moved, or is reached by another path.
async fn adopt_lane(args: &ResetArgs, old: &str, chosen: &[Part<'_>], config: &Config) -> Result<u8, Failure> {
    let mut plans = Vec::new();
    for part in chosen {
        let new = part.id();
        let from = DeliveryId { lane: old.to_owned(), ..new.clone() };
        let Some(progress) = progress_of(part, config, &from).await? else {
            return Err(usage(format!(
                "there is no progress of {from}; see `hapax status` for the lanes that there are"
            )));
        };
        let AnySource::File(mut source) = part.open_source() else {
            return Err(usage("only lanes of files can be taken over".to_owned()));
        };
        let to = source.take_over(&progress.bookmark)?;
        let contract = part.contract_now(config, Purpose::Look).await?;
        println!("{new}: takes over the progress and dead letters of {from}, and goes on at {to}");
        progress.contract.differences(&contract).iter().for_each(|difference| println!("  accepted: {difference}"));
        plans.push((part, from, new, to));
    }
    println!("Nothing is delivered again and nothing left out. A worker that has the old lane is fenced.");
    if !confirmed(args.doing, "Do it?")? {
        return Ok(0);
    }
    for (part, from, new, to) in plans {
        let contract = accepted(part, config).await?;
        let mut books = AnyBooks::of_part(part, config, Purpose::Change).await?.ok_or_else(|| no_books(part))?;
        let after = books.adopt_lanes(std::slice::from_ref(&from), &new, &to, Some(&contract), OldNames::Free).await?;
        if let Some(mut state) = AnyBooks::of_state(config, Purpose::Change).await? {
            state.adopt_lane_memory(&from, &new).await?;
        }
        println!("{new}: now at {}, generation {}", after.bookmark, after.generation);
    }
    Ok(0)
}

/// Where a delivery goes, and the contract that is accepted with it.
struct Plan {
    id: DeliveryId,
    from: Option<Progress>,
    to: Bookmark,
    contract: Option<Contract>,
    /// What accepting the files that are there comes to, in words.
    how: Option<String>,
    /// Files that were not read, and are passed.
    given_up: Vec<String>,
    /// What a person should know before.
    warning: Option<String>,
}

/// Lanes of a pattern of which there is neither progress nor a file, and that were further before the target was restored: who accepts
/// what is there gives them up.
async fn lanes_without_anything(
    args: &ResetArgs,
    chosen: &[Part<'_>],
    config: &Config,
) -> Result<Vec<DeliveryId>, Failure> {
    let mut gone = Vec::new();
    let of_workflow = |part: &Part<'_>| part.workflow.id == args.workflow && part.has_many_files();
    for part in parts(config).filter(|part| args.accept && args.to.is_none() && of_workflow(part)) {
        let lanes = lanes_gone_back(&part, config).await?;
        gone.extend(lanes.into_iter().map(|lane| DeliveryId { lane, ..part.id() }));
    }
    gone.retain(|id| {
        args.sink.as_ref().is_none_or(|sink| *sink == id.sink)
            && args.lane.as_ref().is_none_or(|lane| *lane == id.lane)
            && chosen.iter().all(|part| part.id() != *id)
    });
    Ok(gone)
}

/// What is going to happen to a delivery, in words.
fn say(plan: &Plan) {
    match &plan.from {
        Some(from) => {
            println!("{}: from {} to {}", plan.id, from.bookmark, plan.to);
            let (before, after) = (&from.bookmark, &plan.to);
            let same = (before.incarnation.number, before.position) == (after.incarnation.number, after.position);
            match &plan.how {
                Some(how) => println!("  {how}"),
                None if same => println!("  goes on where it was: nothing is delivered again"),
                None => {}
            }
        }
        None => println!("{}: no progress yet; starts at {}", plan.id, plan.to),
    }
    plan.given_up.iter().for_each(|name| println!("  given up unread: {name}"));
    plan.warning.iter().for_each(|warning| println!("  warning: {warning}"));
    if let (Some(from), Some(contract)) = (&plan.from, &plan.contract) {
        from.contract.differences(contract).iter().for_each(|difference| println!("  accepted: {difference}"));
    }
}

async fn move_to(args: &ResetArgs, chosen: &[Part<'_>], gone: &[DeliveryId], config: &Config) -> Result<u8, Failure> {
    let mut plans = Vec::new();
    for part in chosen {
        let plan = plan(args, part, config).await?;
        say(&plan);
        plans.push((part, plan));
    }
    gone.iter().for_each(|id| println!("{id}: its files are gone, and so is its progress: given up"));
    println!(
        "Going back repeats what lies between, unless the target drops repeats; going forward skips it. A live worker is fenced."
    );
    if !confirmed(args.doing, "Do it?")? {
        return Ok(0);
    }
    for (part, plan) in plans {
        let Plan { id, to, .. } = plan;
        let contract = match plan.contract {
            Some(_) => Some(accepted(part, config).await?),
            None => None,
        };
        let mut books = AnyBooks::of_part(part, config, Purpose::Change).await?.ok_or_else(|| no_books(part))?;
        let after = books.reset(&id, &to, contract.as_ref()).await?;
        if let Some(mut state) = AnyBooks::of_state(config, Purpose::Change).await? {
            state.reset_witness(&id).await?;
        }
        println!("{id}: now at {}, generation {}", after.bookmark, after.generation);
    }
    if let (false, Some(mut state)) = (gone.is_empty(), AnyBooks::of_state(config, Purpose::Change).await?) {
        for id in gone {
            state.reset_witness(id).await?;
        }
    }
    Ok(0)
}

async fn plan(args: &ResetArgs, part: &Part<'_>, config: &Config) -> Result<Plan, Failure> {
    let id = part.id();
    let from = progress_of(part, config, &id).await?;
    let mut source = part.open_source();
    let mut how = None;
    let mut to = match (&mut source, &from) {
        (AnySource::File(file), Some(progress)) => {
            let accepted = place_in_chain(args, part, file, progress).await?;
            how = Some(accepted.how).filter(|how| !how.is_empty());
            accepted.at
        }
        (source, from) => {
            let start = match args.to.as_deref() {
                Some("next") => {
                    return Err(usage(format!("--to next: {id} has no file that it could leave for the next one")));
                }
                Some(text) => Some(start_at(text)?),
                None => None,
            };
            match (start, from) {
                (Some(start), _) => source.start(start).await?,
                (None, Some(progress)) if source.hold(&progress.bookmark).await? == Held::Yes => {
                    progress.bookmark.clone()
                }
                (None, Some(_)) => source.start(StartAt::Earliest).await?,
                (None, None) => source.start(part.start()).await?,
            }
        }
    };
    let warning = match args.to.as_deref().and_then(|text| text.parse::<Position>().ok()) {
        None if from.is_none() && args.to.as_deref() != Some("latest") => delivered_elsewhere(part, config).await?,
        None => None,
        Some(position) => match begins::begins(part, from.as_ref(), position).await {
            Begins::Yes => None,
            Begins::Inside(begins) => return Err(begins::refused(part, position, begins)),
            Begins::Unknown => Some(begins::unknown(position)),
        },
    };
    if let Some(progress) = &from {
        let before = &progress.bookmark.incarnation;
        let same = without_end(&before.text) == without_end(&to.incarnation.text);
        let number = if same { before.number } else { before.number + 1 };
        to.incarnation = Incarnation::new(number, &to.incarnation.text);
    }
    let given_up = match (&mut source, &from) {
        (AnySource::File(file), Some(progress)) => file.given_up(&progress.bookmark, &to).unwrap_or_default(),
        _ => Vec::new(),
    };
    let contract =
        if args.accept || from.is_none() { Some(part.contract_now(config, Purpose::Look).await?) } else { None };
    Ok(Plan { id, from, to, contract, how, given_up, warning })
}

fn start_at(text: &str) -> Result<StartAt, Failure> {
    Ok(match text {
        "earliest" => StartAt::Earliest,
        "latest" => StartAt::Latest,
        text => StartAt::At(text.parse::<Position>().map_err(|error| usage(error.to_string()))?),
    })
}

/// Where a lane of files goes that has read some of its chain already.
async fn place_in_chain(
    args: &ResetArgs,
    part: &Part<'_>,
    file: &mut FileSource,
    progress: &Progress,
) -> Result<Accepted, Failure> {
    let at = &progress.bookmark;
    let said_by_a_person = |at: Bookmark| Accepted { at, how: String::new() };
    let start = match args.to.as_deref() {
        Some("next") => return Ok(said_by_a_person(file.next_file(at)?)),
        Some(text) => start_at(text)?,
        None => {
            return match file.accept(at)? {
                Some(accepted) => Ok(accepted),
                None if part.file.is_some() => Ok(said_by_a_person(given_up(progress))),
                None => Ok(said_by_a_person(file.start(StartAt::Earliest).await?)),
            };
        }
    };
    let to = match start {
        StartAt::Latest => return Ok(file.latest(at)?),
        StartAt::Earliest => match file.oldest_file(at)? {
            Some(to) => to,
            None => file.start(StartAt::Earliest).await?,
        },
        StartAt::At(position) => match file.place_in_file(at, position) {
            // Another file in its place: a person says that it is the same up to there.
            Err(SourceError::Gap { .. }) if args.accept => file.start(start).await?,
            placed => placed?,
        },
    };
    Ok(said_by_a_person(to))
}

/// A file of many that is gone, and whose rest a person gives up: it counts as read to its end.
fn given_up(progress: &Progress) -> Bookmark {
    let incarnation = &progress.bookmark.incarnation;
    let incarnation = Incarnation::new(incarnation.number, &with_end(&incarnation.text));
    Bookmark { incarnation, ..progress.bookmark.clone() }
}

async fn progress_of(part: &Part<'_>, config: &Config, id: &DeliveryId) -> Result<Option<Progress>, Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config, Purpose::Look).await? else { return Ok(None) };
    Ok(books.deliveries().await?.into_iter().find(|found| found.id == *id).map(|found| found.progress))
}

/// The contract as it is now, of a target and a state store that have what a delivery needs: made here where it is missing.
async fn accepted(part: &Part<'_>, config: &Config) -> Result<Contract, Failure> {
    drop(AnyState::open(config).await?);
    part.contract_now(config, Purpose::Change).await
}
