//! A PostgreSQL server of one's own: a fresh cluster in a scratch directory, on a free port of loopback.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::client::{Answer, Client};
use crate::error::{Doing, ServiceError, tail};
use crate::find::{Programs, find_postgres};
use crate::holder::{Holder, Stop, clean};
use crate::launch::{PATIENCE, on_a_port, run, wait_until_it_answers};
use crate::product::Product;
use crate::scratch::Scratch;

const HBA: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\nhost all all ::1/128 trust\n\
                   local replication all trust\nhost replication all 127.0.0.1/32 trust\n";

/// What a server is to be like.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    lines: Vec<String>,
    hba: Vec<String>,
    files: Vec<(&'static str, PathBuf)>,
    initdb: Vec<String>,
    port: Option<u16>,
}

impl Builder {
    /// One setting of `postgresql.conf`.
    #[must_use]
    pub fn setting(self, name: &str, value: &str) -> Self {
        let quoted = value.replace('\'', "''");
        self.line(&format!("{name} = '{quoted}'"))
    }

    /// A line of `postgresql.conf` as it stands.
    #[must_use]
    pub fn line(mut self, line: &str) -> Self {
        self.lines.push(line.to_owned());
        self
    }

    /// A line of `pg_hba.conf`, before those that trust everybody on loopback: the first that fits decides.
    #[must_use]
    pub fn hba(mut self, line: &str) -> Self {
        self.hba.push(line.to_owned());
        self
    }

    /// TLS with this certificate and key.
    #[must_use]
    pub fn tls(mut self, certificate: &Path, key: &Path) -> Self {
        self.files.extend([("server.crt", certificate.to_owned()), ("server.key", key.to_owned())]);
        self.setting("ssl", "on").setting("ssl_cert_file", "server.crt").setting("ssl_key_file", "server.key")
    }

    /// The authority that client certificates must be signed by.
    #[must_use]
    pub fn tls_authority(mut self, certificate: &Path) -> Self {
        self.files.push(("authority.crt", certificate.to_owned()));
        self.setting("ssl_ca_file", "authority.crt")
    }

    /// A further argument for `initdb`.
    #[must_use]
    pub fn initdb(mut self, argument: &str) -> Self {
        self.initdb.push(argument.to_owned());
        self
    }

    /// This port and no other; without it, a free one.
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Makes the cluster and starts the server; returns when it answers.
    ///
    /// # Errors
    /// If there is no PostgreSQL here, or it does not start; the message says what was tried.
    pub fn start(&self) -> Result<Postgres, ServiceError> {
        let programs = find_postgres()?;
        let account = Account::of(Product::Postgres)?;
        let scratch = Scratch::create(Product::Postgres, account.as_ref())?;
        let mut initdb = clean(&programs.program("initdb"), scratch.path(), account.as_ref());
        initdb.args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        run(initdb.arg(scratch.path().join("data")).args(&self.initdb))?;
        self.finish(programs, account, scratch)
    }

    /// Makes a standby of `primary` and starts it: it follows, and can be read. [`Postgres::promote`] makes it writable.
    ///
    /// # Errors
    /// If the copy cannot be made, or the standby does not start.
    pub fn start_standby(&self, primary: &Postgres) -> Result<Postgres, ServiceError> {
        let account = Account::of(Product::Postgres)?;
        let scratch = Scratch::create(Product::Postgres, account.as_ref())?;
        let mut copy = clean(&primary.programs.program("pg_basebackup"), scratch.path(), account.as_ref());
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--wal-method=stream"]);
        copy.args(["--username=postgres", "--host=127.0.0.1", "--port", &primary.port.to_string(), "--pgdata"]);
        run(copy.arg(scratch.path().join("data")))?;
        self.finish(primary.programs.clone(), account, scratch)
    }

    fn finish(&self, programs: Programs, account: Option<Account>, scratch: Scratch) -> Result<Postgres, ServiceError> {
        let mut server = Postgres { programs, account, scratch, port: 0, holder: None };
        self.configure(&server)?;
        on_a_port(self.port, |port| {
            server.port = port;
            server.launch()
        })?;
        Ok(server)
    }

    fn configure(&self, server: &Postgres) -> Result<(), ServiceError> {
        let data = server.data_dir();
        for (name, from) in &self.files {
            let to = data.join(name);
            std::fs::copy(from, &to).doing(|| format!("copy {}", from.display()))?;
            let mode = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&to, mode).doing(|| format!("close {}", to.display()))?;
            if let Some(account) = &server.account {
                account.own(&to)?;
            }
        }
        let hba = self.hba.iter().fold(String::new(), |text, line| text + line + "\n") + HBA;
        let path = data.join("pg_hba.conf");
        std::fs::write(&path, hba).doing(|| format!("write {}", path.display()))?;
        self.lines.iter().try_for_each(|line| server.add_line(line))
    }
}

/// A server; dropping it stops it and removes its directory.
#[derive(Debug)]
pub struct Postgres {
    programs: Programs,
    account: Option<Account>,
    scratch: Scratch,
    port: u16,
    holder: Option<Holder>,
}

impl Postgres {
    /// A server as `initdb` makes it, without a wish.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The URL of a database, for the superuser `postgres`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The directory that holds its Unix socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Its data directory.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.scratch.path().join("log")
    }

    /// Where its programs are.
    #[must_use]
    pub const fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The process id of its first process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.data_dir().join("postmaster.pid")).ok()?;
        text.lines().next()?.parse().ok()
    }

    /// A connection to `database`.
    ///
    /// # Errors
    /// If the server is not there, or refuses.
    pub fn connect(&self, database: &str) -> Result<Client, ServiceError> {
        Client::connect(self.port, database)
    }

    /// Runs SQL in the database `postgres`, on a connection of its own.
    ///
    /// # Errors
    /// What the server says.
    pub fn query(&self, sql: &str) -> Result<Answer, ServiceError> {
        self.connect("postgres")?.query(sql)
    }

    /// Adds a line to `postgresql.conf`; it counts from the next start or reload on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_line(&self, line: &str) -> Result<(), ServiceError> {
        let path = self.data_dir().join("postgresql.conf");
        let mut text = std::fs::read_to_string(&path).doing(|| format!("read {}", path.display()))?;
        writeln!(text, "{line}").expect("a string takes text");
        std::fs::write(&path, text).doing(|| format!("write {}", path.display()))
    }

    /// Gives a file or folder to the account that the server runs under.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give(&self, path: &Path) -> Result<(), ServiceError> {
        self.account.as_ref().map_or(Ok(()), |account| account.own(path))
    }

    /// A command that runs under the server's account, in its directory.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        clean(Path::new(program), self.scratch.path(), self.account.as_ref())
    }

    /// Stops it and waits for its end. The directory stays.
    pub fn stop(&mut self, stop: Stop) {
        if let Some(holder) = &mut self.holder {
            holder.stop(stop, PATIENCE);
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self) -> Result<(), ServiceError> {
        self.stop(Stop::Fast);
        self.launch()
    }

    /// Makes a standby writable.
    ///
    /// # Errors
    /// What the server says.
    pub fn promote(&self) -> Result<(), ServiceError> {
        self.query("SELECT pg_promote(true, 60)").map(drop)
    }

    /// Waits until this standby has replayed all that `primary` has written by now.
    ///
    /// # Errors
    /// If it does not get so far.
    pub fn catch_up(&self, primary: &Self) -> Result<(), ServiceError> {
        let answer = primary.query("SELECT pg_current_wal_lsn()")?;
        let position = answer.value().unwrap_or_default();
        self.wait_until(
            &format!("SELECT pg_last_wal_replay_lsn() >= '{position}'"),
            "did not replay what its primary has",
        )
    }

    /// Follows nobody any more, and stays a standby: what its primary commits from now on is not here.
    ///
    /// # Errors
    /// What the server says.
    pub fn stop_following(&self) -> Result<(), ServiceError> {
        self.query("ALTER SYSTEM SET primary_conninfo = ''")?;
        self.query("SELECT pg_reload_conf()")?;
        self.wait_until("SELECT COUNT(*) = 0 FROM pg_stat_wal_receiver", "did not stop following its primary")
    }

    /// Asks until the answer is yes.
    fn wait_until(&self, question: &str, else_it: &str) -> Result<(), ServiceError> {
        let started = Instant::now();
        while self.query(question)?.value() != Some("t") {
            if started.elapsed() > PATIENCE {
                let (what, log) = (else_it.to_owned(), tail(&self.log()));
                return Err(ServiceError::NoAnswer { product: Product::Postgres, port: self.port, what, log });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn launch(&mut self) -> Result<(), ServiceError> {
        if let Some(before) = self.holder.take() {
            before.release();
        }
        let mut server = Command::new(self.programs.program("postgres"));
        server.arg("-D").arg(self.data_dir());
        for setting in [
            format!("port={}", self.port),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", self.scratch.path().display()),
        ] {
            server.arg("-c").arg(setting);
        }
        let mut holder = Holder::start(Product::Postgres, &server, self.scratch.path(), self.account.as_ref())?;
        let up = wait_until_it_answers(Product::Postgres, self.port, &self.log(), &mut holder, || self.is_ours());
        self.holder = Some(holder);
        up
    }

    /// Whether what answers on the port is this server and not one that took the port before it.
    fn is_ours(&self) -> bool {
        let answer = self.query("SHOW data_directory");
        let directory = answer.ok().and_then(|answer| Some(PathBuf::from(answer.value()?)));
        let real = |path: PathBuf| path.canonicalize().ok();
        directory.and_then(real).is_some_and(|directory| Some(directory) == real(self.data_dir()))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            holder.stop(Stop::Immediate, PATIENCE);
            holder.release();
        }
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
