//! Our tables and the rights that a worker needs in MySQL and MariaDB, printed as statements.

use hapax_connect::mysql::config::Deletes;
use hapax_connect::mysql::rights::{TargetRights, grants, grants_without_ours};
use hapax_connect::mysql::tables;
use hapax_connect::sqlite::tables::Role;
use hapax_model::mode::ProgressPlace;
use hapax_sql::mysql::{Flavour, MysqlUrl};

use crate::assemble::{Part, Place, parts, plan};
use crate::config::{Config, Target};

/// The tables, for MariaDB: which server it is, only a connection could tell.
pub(super) fn print_tables() {
    println!("-- as MariaDB takes them; for MySQL write utf8mb4_0900_bin in place of utf8mb4_nopad_bin");
    println!("{}", tables::ddl(Flavour::MariaDb));
}

/// Prints the rights, database by database; also for those that hold none of our tables.
pub(super) fn print_grants(config: &Config, places: &[(Place, Role)]) {
    for (place, _) in places {
        let Place::Mysql(url) = place else { continue };
        let targets: Vec<TargetRights> = parts(config).filter_map(|part| rights_of(&part, place)).collect();
        print_one(place, &grants(database_of(url), url.user(), &targets));
    }
    for part in parts(config).filter(|part| part.table().progress == ProgressPlace::State) {
        let Target::Mysql(mysql) = &part.sink.target else { continue };
        let place = Place::Mysql(mysql.url.clone());
        if places.iter().all(|(known, _)| *known != place) {
            let targets: Vec<TargetRights> = rights_of(&part, &place).into_iter().collect();
            print_one(&place, &grants_without_ours(database_of(&mysql.url), mysql.url.user(), &targets));
        }
    }
}

/// The configuration was refused if it names none.
fn database_of(url: &MysqlUrl) -> &str {
    url.database().unwrap_or_default()
}

fn print_one(place: &Place, statements: &Result<String, hapax_sql::QuoteError>) {
    println!("-- {place}: rights of the worker, if another user made the tables; write its own host in place of %");
    match statements {
        Ok(statements) => println!("{statements}"),
        Err(error) => println!("-- none can be printed: {error}"),
    }
}

/// What a part needs on its own table, if that is reached through this database.
fn rights_of(part: &Part<'_>, place: &Place) -> Option<TargetRights> {
    let Target::Mysql(mysql) = &part.sink.target else { return None };
    if Place::Mysql(mysql.url.clone()) != *place {
        return None;
    }
    let deletes = if mysql.table.delete_when.is_some() { Deletes::Some } else { Deletes::Never };
    let mode = plan::mode_without_table(&mysql.table, &part.workflow.delivery);
    Some(TargetRights { table: mysql.table.name.parse().ok()?, mode, deletes })
}
