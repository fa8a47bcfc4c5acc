//! The PostgreSQL server to measure: the one that HAPAX_TEST_POSTGRES names, else one of our own with the settings that
//! `initdb` gives it and fsync on. Knows what processor time all its processes took, if it runs here and is ours.

use std::fs;

use hapax_services::Postgres;

/// Clock ticks are a hundredth of a second wherever Linux runs.
const NANOS_PER_TICK: u64 = 10_000_000;

pub(crate) struct Server {
    url: String,
    own: Option<Postgres>,
}

impl Server {
    pub(crate) fn start() -> Self {
        if let Ok(given) = std::env::var("HAPAX_TEST_POSTGRES") {
            println!("server: the one that HAPAX_TEST_POSTGRES names, with its own settings");
            return Self { url: given, own: None };
        }
        let own = Postgres::builder().start().expect("a PostgreSQL server");
        let show = |name: &str| {
            let answer = own.query(&format!("SHOW {name}")).expect("an answer");
            format!("{name} {}", answer.value().unwrap_or_default())
        };
        let facts = ["server_version", "fsync", "synchronous_commit", "shared_buffers"].map(show).join(", ");
        println!("server: started for this run, settings as initdb makes them ({facts})");
        Self { url: own.url("postgres"), own: Some(own) }
    }

    /// The URL of a database in it.
    pub(crate) fn url(&self, database: &str) -> String {
        match self.url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{database}"),
            None => self.url.clone(),
        }
    }

    /// Nanoseconds that the server's processes have run so far, those that have ended included; 0 if nobody can say.
    pub(crate) fn spent(&self) -> u64 {
        let Some(first) = self.own.as_ref().and_then(Postgres::pid) else { return 0 };
        let all = fs::read_dir("/proc").expect("a list of processes");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let ticks = pids.filter_map(|pid| {
            let (parent, own, ended) = times(pid)?;
            if pid == first { Some(own + ended) } else { (parent == first).then_some(own) }
        });
        ticks.sum::<u64>() * NANOS_PER_TICK
    }
}

/// A process's parent, its own ticks and those of its children that have ended.
fn times(pid: u32) -> Option<(u32, u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((fields.get(1)?.parse().ok()?, ticks(11)? + ticks(12)?, ticks(13)? + ticks(14)?))
}
