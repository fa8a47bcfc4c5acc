//! `hapax setup`: the tables that Hapax keeps beside the data.

use std::collections::BTreeSet;

use hapax_connect::sqlite::ddl::suggested_ddl;
use hapax_connect::sqlite::tables::{self, Role};
use hapax_model::mode::ProgressPlace;

use super::{ask, load};
use crate::assemble::{AnyBooks, Place, open_state, parts};
use crate::cli::{SetupArgs, Shared};
use crate::config::Config;
use crate::exit::Failure;

/// Prints, makes or drops our tables.
pub(crate) async fn setup(args: &SetupArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    if args.sql {
        print_sql(&loaded.config);
        return Ok(0);
    }
    if args.drop {
        return drop_tables(args, &loaded.config).await;
    }
    describe(&loaded.config);
    if !args.yes && !ask("Make these tables?", "say --yes to do it, or --sql to see the statements")? {
        return Ok(0);
    }
    for place in targets(&loaded.config) {
        let mut books = AnyBooks::open(&place).await?.ok_or_else(|| no_database(&place))?;
        books.make_tables(Role::Target).await?;
        println!("made: {place}");
    }
    if let (Some(place), Some(_)) = (Place::of_state(&loaded.config), open_state(&loaded.config).await?) {
        println!("made: {place}");
    }
    Ok(0)
}

/// Databases that hold progress beside the data, each once.
fn targets(config: &Config) -> BTreeSet<Place> {
    let beside = parts(config).filter(|part| part.sqlite().progress == ProgressPlace::Sink);
    beside.filter_map(|part| Place::of_part(&part, config)).collect()
}

fn no_database(place: &Place) -> Failure {
    Failure::new("HX4001", format!("{place} does not exist; create the database, or correct the path"))
}

fn describe(config: &Config) {
    println!("SQLite files get their tables by themselves when a workflow first runs; this makes them now:");
    for place in targets(config) {
        println!("  {place}: progress, epoch log, dead letters (tables hapax_*)");
    }
    if let Some(place) = Place::of_state(config) {
        println!("  {place}: the state store");
    }
}

fn print_sql(config: &Config) {
    for place in targets(config) {
        println!("-- {place}: what Hapax keeps beside the data");
        println!("{}", tables::ddl(Role::Target));
    }
    if let Some(place) = Place::of_state(config) {
        println!("-- {place}: the state store");
        println!("{}", tables::ddl(Role::State));
    }
    for part in parts(config) {
        println!("-- a table that workflow {} could write to; change it as you like", part.workflow.id);
        println!("{}", suggested_ddl(&part.connector()));
    }
    println!("-- rights: SQLite has none of its own; the worker must be able to write the files and their folders");
}

async fn drop_tables(args: &SetupArgs, config: &Config) -> Result<u8, Failure> {
    let mut places = targets(config);
    places.extend(Place::of_state(config));
    let mut all = Vec::new();
    for place in places {
        if let Some(books) = AnyBooks::open(&place).await? {
            all.push((place, books));
        }
    }
    println!("This drops Hapax's own tables; progress and dead letters are gone, your own tables stay:");
    all.iter().for_each(|(place, _)| println!("  {place}"));
    if !args.yes && !ask("Drop them?", "say --yes to do it")? {
        return Ok(0);
    }
    for (place, mut books) in all {
        books.drop_tables().await?;
        println!("dropped: {place}");
    }
    Ok(0)
}
