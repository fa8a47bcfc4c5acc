//! The rights that a worker needs in PostgreSQL, printed as GRANT statements.

use hapax_connect::postgres::rights::{Deletes, TargetRights, grants, grants_without_ours};
use hapax_connect::sqlite::tables::Role;
use hapax_model::mode::ProgressPlace;
use hapax_sql::postgres::PostgresUrl;

use crate::assemble::{Part, Place, parts, plan, postgres_role};
use crate::config::{Config, Target};

/// Prints them, database by database; also for those that hold none of our tables.
pub(super) fn print_grants(config: &Config, places: &[(Place, Role)]) {
    for (place, role) in places {
        let Place::Postgres(url) = place else { continue };
        let targets: Vec<TargetRights> = parts(config).filter_map(|part| rights_of(&part, url)).collect();
        print_one(place, &grants(postgres_role(*role), user_of(url), &targets));
    }
    for part in parts(config).filter(|part| part.table().progress == ProgressPlace::State) {
        let Target::Postgres(postgres) = &part.sink.target else { continue };
        let place = Place::Postgres(postgres.url.clone());
        if places.iter().all(|(known, _)| *known != place) {
            let targets: Vec<TargetRights> = rights_of(&part, &postgres.url).into_iter().collect();
            print_one(&place, &grants_without_ours(user_of(&postgres.url), &targets));
        }
    }
}

fn user_of(url: &PostgresUrl) -> &str {
    url.user().unwrap_or("the_worker")
}

fn print_one(place: &Place, statements: &Result<String, hapax_sql::QuoteError>) {
    println!("-- {place}: rights of the worker, if another role owns the tables");
    match statements {
        Ok(statements) => println!("{statements}"),
        Err(error) => println!("-- none can be printed: {error}"),
    }
}

/// What a part needs on its own table, if that is in this database.
fn rights_of(part: &Part<'_>, url: &PostgresUrl) -> Option<TargetRights> {
    let Target::Postgres(postgres) = &part.sink.target else { return None };
    let place = |url: &PostgresUrl| Place::Postgres(Box::new(url.clone()));
    if place(&postgres.url) != place(url) {
        return None;
    }
    let deletes = if postgres.table.delete_when.is_some() { Deletes::Wanted } else { Deletes::Never };
    let mode = plan::mode_without_table(&postgres.table, &part.workflow.delivery);
    Some(TargetRights { table: postgres.table.name.parse().ok()?, mode, deletes })
}
