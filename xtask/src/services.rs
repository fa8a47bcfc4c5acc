//! `cargo xtask services -- COMMAND…`: runs a command with the servers that the tests ask for.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use hapax_services::{Mariadb, MariadbBuilder, Postgres};

use crate::{Usage, child};

/// The variable that tells tests where PostgreSQL is: the URL of a superuser.
pub(crate) const POSTGRES: &str = "HAPAX_TEST_POSTGRES";

/// The variable that tells tests where MariaDB is: the URL of `root`, who has no password, without a database.
pub(crate) const MYSQL: &str = "HAPAX_TEST_MYSQL";

/// The variable that tells tests where MySQL's own server is, of version 8.0.20 or later. Not every machine can have it:
/// the tests that need it are ignored unless asked for, and counted as left out, aloud.
pub(crate) const MYSQL8: &str = "HAPAX_TEST_MYSQL8";

/// The servers, running until this is dropped.
#[derive(Debug)]
pub(crate) struct Services {
    postgres: Postgres,
    mariadb: Mariadb,
    mysql: Result<Mariadb, String>,
}

impl Services {
    /// Starts them all. Without one of them nothing is tested: a test that is skipped looks like one that passed.
    pub(crate) fn start() -> Result<Self> {
        // The slowest to start, and the only one that may be missing.
        let mysql = std::thread::spawn(|| family(Mariadb::mysql()).start().map_err(|error| error.to_string()));
        let postgres = Postgres::builder()
            .setting("fsync", "off")
            .setting("max_connections", "300")
            .start()
            .context("the tests need PostgreSQL")?;
        println!("PostgreSQL of {} on port {}", postgres.programs().directory().display(), postgres.port());
        let mariadb = family(Mariadb::builder()).start().context("the tests need MariaDB")?;
        println!("MariaDB, {} on port {}", mariadb.programs().server().display(), mariadb.port());
        let mysql = mysql.join().unwrap_or_else(|_| Err("its start broke off".to_owned()));
        match &mysql {
            Ok(mysql) => println!("MySQL, {} on port {}", mysql.programs().server().display(), mysql.port()),
            Err(why) => println!("MySQL's own server is not to be had here; what it adds is left out. {why}"),
        }
        Ok(Self { postgres, mariadb, mysql })
    }

    /// What does not run, and why; silence would look like success.
    pub(crate) fn left_out(&self) -> Option<String> {
        let why = self.mysql.as_ref().err()?;
        let first = why.lines().next().unwrap_or_default();
        Some(format!("tests over MySQL's own server ({first})"))
    }

    /// What a command has to know of them.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut known = vec![(POSTGRES, self.postgres.url("postgres")), (MYSQL, self.mariadb.url(""))];
        known.extend(self.mysql.as_ref().ok().map(|mysql| (MYSQL8, mysql.url(""))));
        known
    }
}

fn family(builder: MariadbBuilder) -> MariadbBuilder {
    builder.without_sync().setting("max_connections", "300")
}

/// Runs one command with the servers.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let Some((program, arguments)) = command_of(words) else {
        bail!(Usage("services needs a command: `cargo xtask services -- cargo test -p hapax-connect`".to_owned()));
    };
    let services = Services::start()?;
    // Where the caller stands, not in the root: the command is his.
    let mut command = std::process::Command::new(program);
    command.args(arguments).envs(services.environment());
    println!("$ {}", child::line(&command));
    let status = command.status().with_context(|| format!("could not start `{program}`"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

fn command_of<'a, 'w>(words: &'w [&'a str]) -> Option<(&'a str, &'w [&'a str])> {
    let words = words.strip_prefix(&["--"]).unwrap_or(words);
    words.split_first().map(|(program, arguments)| (*program, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the command is what the caller typed. Method: with and without the dashes, and none.
    #[test]
    fn the_command_follows_the_dashes() {
        assert_eq!(command_of(&["--", "cargo", "test"]), Some(("cargo", &["test"][..])));
        assert_eq!(command_of(&["env", "--", "x"]), Some(("env", &["--", "x"][..])));
        assert_eq!(command_of(&["--"]), None);
    }

    /// Goal: a command finds the servers, and its end is told on. Method: shells that look at the variables.
    #[test]
    fn a_command_is_told_where_the_servers_are() {
        let script = "case \"$HAPAX_TEST_POSTGRES $HAPAX_TEST_MYSQL\" in \
                      postgres://postgres@127.0.0.1:*/postgres\\ mysql://root@127.0.0.1:*) exit 7;; esac";
        let code = run(&["--", "sh", "-c", script]).map_err(|error| format!("{error:#}"));
        assert_eq!(code.map(|code| format!("{code:?}")), Ok(format!("{:?}", ExitCode::from(7))));
    }
}
