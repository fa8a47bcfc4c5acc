//! `hapax setup`: the tables that Hapax keeps beside the data.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hapax_connect::sqlite::ddl::suggested_ddl;
use hapax_connect::sqlite::tables::{self, Role};
use hapax_model::mode::ProgressPlace;

use super::ledger::Ledger;
use super::{ask, load};
use crate::assemble::{existing_state, open_state, parts};
use crate::cli::{SetupArgs, Shared};
use crate::config::{Config, StateUrl};
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
    for path in targets(&loaded.config) {
        let mut ledger = Ledger::open(&path).await?;
        ledger.run(|connection| tables::ensure(connection, Role::Target)).await?;
        println!("made: {}", path.display());
    }
    if let Some(StateUrl::Sqlite(path)) = open_state(&loaded.config).await?.map(|_| &loaded.config.state) {
        println!("made: {}", path.display());
    }
    Ok(0)
}

/// Databases that hold progress beside the data, each once.
fn targets(config: &Config) -> BTreeSet<PathBuf> {
    parts(config).filter(|p| p.sqlite().progress == ProgressPlace::Sink).map(|p| p.sqlite().path.clone()).collect()
}

fn describe(config: &Config) {
    println!("SQLite files get their tables by themselves when a workflow first runs; this makes them now:");
    for path in targets(config) {
        println!("  {}: progress, epoch log, dead letters (tables hapax_*)", path.display());
    }
    if let StateUrl::Sqlite(path) = &config.state {
        println!("  {}: the state store", path.display());
    }
}

fn print_sql(config: &Config) {
    for path in targets(config) {
        println!("-- {}: what Hapax keeps beside the data", path.display());
        println!("{}", tables::ddl(Role::Target));
    }
    if let StateUrl::Sqlite(path) = &config.state {
        println!("-- {}: the state store", path.display());
        println!("{}", tables::ddl(Role::State));
    }
    for part in parts(config) {
        println!("-- a table that workflow {} could write to; change it as you like", part.workflow.id);
        println!("{}", suggested_ddl(&part.connector()));
    }
    println!("-- rights: SQLite has none of its own; the worker must be able to write the files and their folders");
}

async fn drop_tables(args: &SetupArgs, config: &Config) -> Result<u8, Failure> {
    let mut paths = targets(config);
    paths.extend(existing_state(config).map(PathBuf::from));
    paths.retain(|path| path.exists());
    println!("This drops Hapax's own tables; progress and dead letters are gone, your own tables stay:");
    paths.iter().for_each(|path| println!("  {}", path.display()));
    if !args.yes && !ask("Drop them?", "say --yes to do it")? {
        return Ok(0);
    }
    for path in paths {
        let mut ledger = Ledger::open(&path).await?;
        ledger.run(|connection| tables::drop_all(connection)).await?;
        println!("dropped: {}", path.display());
    }
    Ok(0)
}
