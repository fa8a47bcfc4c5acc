//! The rights that a worker needs in PostgreSQL, printed as GRANT statements.

use hapax_connect::postgres::rights::{Deletes, TargetRights, grants};
use hapax_connect::sqlite::tables::Role;
use hapax_sql::postgres::PostgresUrl;

use crate::assemble::{Part, Place, parts, plan, postgres_role};
use crate::config::{Config, Target};

/// Prints them, database by database.
pub(super) fn print_grants(config: &Config, places: &[(Place, Role)]) {
    for (place, role) in places {
        let Place::Postgres(url) = place else { continue };
        let user = url.user().unwrap_or("the_worker");
        let targets: Vec<TargetRights> = parts(config).filter_map(|part| rights_of(&part, url)).collect();
        println!("-- {place}: rights of the worker, if another role owns the tables");
        match grants(postgres_role(*role), user, &targets) {
            Ok(statements) => println!("{statements}"),
            Err(error) => println!("-- none can be printed: {error}"),
        }
    }
}

/// What a part needs on its own table, if that is in this database.
fn rights_of(part: &Part<'_>, url: &PostgresUrl) -> Option<TargetRights> {
    let Target::Postgres(postgres) = &part.sink.target else { return None };
    if Place::Postgres(postgres.url.clone()) != Place::Postgres(url.clone()) {
        return None;
    }
    let deletes = if postgres.table.delete_when.is_some() { Deletes::Wanted } else { Deletes::Never };
    let mode = plan::mode_without_table(&postgres.table, &part.workflow.delivery);
    Some(TargetRights { table: postgres.table.name.parse().ok()?, mode, deletes })
}
