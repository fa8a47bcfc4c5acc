//! `hapax setup`: the tables that Hapax keeps beside the data, and the rights that a worker needs.

mod drop;
#[cfg(feature = "postgres")]
mod grants;
#[cfg(feature = "mysql")]
mod mysql_grants;

use hapax_connect::sqlite::tables::{self, Role};
use hapax_model::mode::ProgressPlace;

use super::{ask, load};
use crate::assemble::{AnyBooks, AnyState, Making, Place, Purpose, parts};
use crate::cli::{SetupArgs, Shared};
use crate::config::Config;
use crate::exit::Failure;

/// Prints, makes or drops our tables.
pub(crate) async fn setup(args: &SetupArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    let places = places(&loaded.config);
    if args.sql {
        print_sql(&loaded.config, &places).await;
        return Ok(0);
    }
    if args.drop {
        return drop::drop_tables(args, &loaded.config, places).await;
    }
    describe(&places);
    if !args.yes && !ask("Make these tables?", "say --yes to do it, or --sql to see the statements")? {
        return Ok(0);
    }
    for (place, role) in &places {
        let done = match make(place, *role, &loaded.config).await? {
            Making::Made => "made",
            Making::BroughtOver => "brought to this version",
            Making::ThereAlready => "there already",
        };
        println!("{done}: {place}");
    }
    Ok(0)
}

/// Every database that holds our tables, each once, with what it is used for.
fn places(config: &Config) -> Vec<(Place, Role)> {
    let state = Place::of_state(config);
    let beside = parts(config).filter(|part| part.table().progress == ProgressPlace::Sink);
    let mut places: Vec<(Place, Role)> = Vec::new();
    for place in beside.filter_map(|part| Place::of_part(&part, config)) {
        if state.as_ref() != Some(&place) && places.iter().all(|(known, _)| *known != place) {
            places.push((place, Role::Target));
        }
    }
    places.extend(state.map(|state| (state, Role::State)));
    places
}

async fn make(place: &Place, role: Role, config: &Config) -> Result<Making, Failure> {
    match AnyBooks::open(place, Purpose::Change).await? {
        Some(mut books) => books.make_tables(role).await,
        // A state store is Hapax's own file; a target is the user's.
        None if role == Role::State => AnyState::open(config).await.map(|_| Making::Made),
        None => {
            Err(Failure::new("HX4001", format!("{place} does not exist; create the database, or correct the path")))
        }
    }
}

const fn contents(role: Role) -> &'static str {
    match role {
        Role::Target => "progress, epoch log, dead letters",
        Role::State => {
            "the state store: leases, witnesses, notes, pauses; progress and dead letters of what keeps them there"
        }
    }
}

fn describe(places: &[(Place, Role)]) {
    println!("These databases get, or keep, Hapax's own tables (SQLite, MySQL: hapax_*, PostgreSQL: schema hapax):");
    for (place, role) in places {
        println!("  {place}: {}", contents(*role));
    }
    println!("SQLite files would get them by themselves when a workflow first runs; servers get them only here.");
}

async fn print_sql(config: &Config, places: &[(Place, Role)]) {
    for (place, role) in places {
        println!("-- {place}: {}", contents(*role));
        match place {
            Place::Sqlite(_) => println!("{}", tables::ddl(*role)),
            #[cfg(feature = "postgres")]
            Place::Postgres(_) => {
                println!("{}", hapax_connect::postgres::tables::ddl(crate::assemble::postgres_role(*role)));
            }
            #[cfg(feature = "mysql")]
            Place::Mysql(_) => mysql_grants::print_tables(),
        }
    }
    for part in parts(config) {
        println!("-- a table that workflow {} could write to; change it as you like", part.workflow.id);
        println!("{}", part.suggested_ddl().await);
    }
    if places.iter().any(|(place, _)| matches!(place, Place::Sqlite(_))) {
        println!("-- rights: SQLite has none of its own; the worker must be able to write the files and their folders");
    }
    #[cfg(feature = "postgres")]
    grants::print_grants(config, places);
    #[cfg(feature = "mysql")]
    mysql_grants::print_grants(config, places);
}
