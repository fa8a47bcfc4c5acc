//! The MariaDB server to measure: the one that HAPAX_TEST_MYSQL names, else one of our own with the settings that it
//! comes with, so every COMMIT waits for the disk. Knows what processor time it took, if it runs here and is ours.

use std::fs;

use hapax_services::Mariadb;

/// Clock ticks are a hundredth of a second wherever Linux runs.
const NANOS_PER_TICK: u64 = 10_000_000;

pub(crate) struct Server {
    url: String,
    own: Option<Mariadb>,
}

impl Server {
    pub(crate) fn start() -> Self {
        if let Ok(given) = std::env::var("HAPAX_TEST_MYSQL") {
            println!("server: the one that HAPAX_TEST_MYSQL names, with its own settings");
            return Self { url: given.trim_end_matches('/').to_owned(), own: None };
        }
        let own = Mariadb::builder().start().expect("a MariaDB server");
        let show = |name: &str| {
            let answer = own.query(&format!("SELECT @@{name}")).expect("an answer");
            format!("{name} {}", answer.value().unwrap_or_default())
        };
        let facts = ["version", "innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size", "sync_binlog"]
            .map(show)
            .join(", ");
        println!("server: started for this run, with MariaDB's own settings ({facts})");
        Self { url: own.url(""), own: Some(own) }
    }

    /// The URL of a database in it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("{}/{database}", self.url)
    }

    /// Nanoseconds that the server has run so far; 0 if nobody can say.
    pub(crate) fn spent(&self) -> u64 {
        let Some(pid) = self.own.as_ref().and_then(Mariadb::pid) else { return 0 };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the server's counters");
        let behind_name = stat.rsplit_once(')').expect("a name in brackets").1;
        let ticks = behind_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a count"));
        ticks.sum::<u64>() * NANOS_PER_TICK
    }
}
