//! `hapax setup --drop`: what Hapax keeps for this configuration goes, after it was listed; what it keeps for others in
//! the same databases stays, unless `--all` says otherwise.
//!
//! Invariant: without `--all` no row of a workflow or sink that is not in the configuration is touched.

use std::collections::{BTreeMap, BTreeSet};

use hapax_connect::sqlite::tables::Role;
use hapax_engine::books::{Books as _, StateBooks as _};
use hapax_engine::letters::LetterChoice;
use hapax_model::position::DeliveryId;

use super::super::ask;
use crate::assemble::{AnyBooks, Place, Purpose, parts};
use crate::cli::SetupArgs;
use crate::config::Config;
use crate::exit::Failure;

/// One database, and what is in it.
struct Holding {
    place: Place,
    books: AnyBooks,
    /// Why it cannot be said whose things are in it.
    unreadable: Option<Failure>,
    /// By workflow and sink.
    held: BTreeMap<(String, String), Held>,
    /// Workflows that somebody paused.
    paused: BTreeSet<String>,
}

/// What is kept for one sink of one workflow.
#[derive(Default)]
struct Held {
    deliveries: BTreeSet<DeliveryId>,
    read: u64,
    letters: u64,
}

/// Lists, asks, drops.
pub(super) async fn drop_tables(args: &SetupArgs, config: &Config, places: Vec<(Place, Role)>) -> Result<u8, Failure> {
    let ours: BTreeSet<(String, String)> =
        parts(config).map(|part| (part.workflow.id.clone(), part.sink.name.clone())).collect();
    let workflows: BTreeSet<&str> = config.workflows.iter().map(|workflow| workflow.id.as_str()).collect();
    let mut all = Vec::new();
    for (place, role) in places {
        if let Some(books) = AnyBooks::open(&place, Purpose::Look).await? {
            all.push(Holding::look(place, books, role).await);
        }
    }
    println!("This drops what Hapax keeps; progress and dead letters are gone, your own tables stay:");
    all.iter().for_each(|holding| holding.describe(&ours, args));
    if !args.yes && !ask("Drop them?", "say --yes to do it")? {
        return Ok(0);
    }
    let mut code = 0;
    for mut holding in all {
        let place = holding.place.to_string();
        if args.all || (holding.unreadable.is_none() && !holding.has_more_than(&ours, &workflows)) {
            holding.books = AnyBooks::reopened(&holding.place).await?;
            holding.books.drop_tables().await?;
            println!("dropped: {place}");
        } else if let Some(failure) = &holding.unreadable {
            println!("kept: {place}: whose progress is in it cannot be read ({failure}); --all drops it unseen");
            code = 1;
        } else {
            holding.books = AnyBooks::reopened(&holding.place).await?;
            let forgotten = holding.forget(&ours, &workflows).await?;
            println!("forgotten: {forgotten} of {place}; its tables stay, for what is not in this configuration");
        }
    }
    Ok(code)
}

impl Holding {
    async fn look(place: Place, books: AnyBooks, role: Role) -> Self {
        let mut holding = Self { place, books, unreadable: None, held: BTreeMap::new(), paused: BTreeSet::new() };
        if let Err(failure) = holding.read(role).await {
            holding.unreadable = Some(failure);
        }
        holding
    }

    async fn read(&mut self, role: Role) -> Result<(), Failure> {
        for stored in self.books.deliveries().await? {
            let held = self.held_of(&stored.id);
            held.read += stored.progress.totals.read;
        }
        for id in self.books.owners().await? {
            self.held_of(&id);
        }
        if role == Role::State {
            let noted = self.books.notes().await?.into_iter().map(|noted| noted.id);
            let leased = self.books.leases().await?.into_iter().map(|lease| lease.id);
            let seen = self.books.witnesses().await?.into_iter().map(|(id, _)| id);
            for id in noted.chain(leased).chain(seen) {
                self.held_of(&id);
            }
            self.paused = self.books.pauses().await?.into_iter().map(|pause| pause.workflow).collect();
        }
        for ((workflow, sink), held) in &mut self.held {
            let choice =
                LetterChoice { workflow: Some(workflow.clone()), sink: Some(sink.clone()), ..LetterChoice::default() };
            held.letters = self.books.causes(&choice, 0).await?.iter().map(|group| group.count).sum();
        }
        Ok(())
    }

    fn held_of(&mut self, id: &DeliveryId) -> &mut Held {
        let held = self.held.entry((id.workflow.clone(), id.sink.clone())).or_default();
        held.deliveries.insert(id.clone());
        held
    }

    /// Whether it holds what no part of the configuration owns.
    fn has_more_than(&self, ours: &BTreeSet<(String, String)>, workflows: &BTreeSet<&str>) -> bool {
        self.held.keys().any(|pair| !ours.contains(pair))
            || self.paused.iter().any(|workflow| !workflows.contains(workflow.as_str()))
    }

    fn describe(&self, ours: &BTreeSet<(String, String)>, args: &SetupArgs) {
        println!("  {}", self.place);
        if let Some(failure) = &self.unreadable {
            println!("    cannot be read: {failure}");
        }
        for (pair, held) in &self.held {
            let whose = match (ours.contains(pair), args.all) {
                (true, _) => "",
                (false, true) => ", not in this configuration",
                (false, false) => ", not in this configuration: stays (--all drops it too)",
            };
            println!(
                "    {}/{}: {} lane(s), {} input(s) read, {} dead letter(s) that wait{whose}",
                pair.0,
                pair.1,
                held.deliveries.len(),
                held.read,
                held.letters
            );
        }
    }

    /// Removes what is ours, row by row; how much that was, in words.
    async fn forget(
        &mut self,
        ours: &BTreeSet<(String, String)>,
        workflows: &BTreeSet<&str>,
    ) -> Result<String, Failure> {
        let mut forgotten = 0;
        for held in self.held.iter().filter(|(pair, _)| ours.contains(*pair)).map(|(_, held)| held) {
            for id in &held.deliveries {
                self.books.forget(id).await?;
                forgotten += 1;
            }
        }
        for workflow in self.paused.iter().filter(|workflow| workflows.contains(workflow.as_str())) {
            self.books.resume(workflow).await?;
        }
        Ok(format!("{forgotten} delivery(s)"))
    }
}
